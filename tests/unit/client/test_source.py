"""The client has what the document describes: a method for each operation, a type for each answer."""

from __future__ import annotations

import json

import pytest
from client_source import ROOT, client_source, method_name
from recorded import RECORD, assert_current

from effaced.api.catalogue import OPERATIONS
from effaced.api.openapi.document import document
from effaced.api.operations import version
from effaced.api.operations.declare import Operation
from effaced.client import VERSION, AsyncClient, Client

FOLDER = ROOT / "effaced/client/resources"


def test_the_resources_are_current() -> None:
    sources = client_source(json.loads(document()))
    for name, source in sources.items():
        assert_current(FOLDER / name, source)
    for path in FOLDER.glob("*.py"):
        if RECORD and path.name not in sources:
            path.unlink()
    assert {path.name for path in FOLDER.glob("*.py")} == set(sources)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_every_operation_has_a_method_in_both_clients(operation: Operation) -> None:
    resource = operation.tag.lower().replace(" ", "_")
    for kind in (Client, AsyncClient):
        client = kind("https://effaced.example", "eff_key")
        assert callable(getattr(getattr(client, resource), method_name(operation.id, operation.tag)))


def test_the_client_is_of_the_version_that_is_served() -> None:
    assert version.CURRENT == VERSION


@pytest.mark.parametrize(
    ("operation_id", "tag", "name"),
    [
        ("create_request", "Requests", "create"),
        ("list_request_events", "Requests", "list_events"),
        ("list_entries", "Requests", "list_entries"),
        ("get_dead_letter", "Dead letters", "get"),
        ("list_retention_policies", "Retry policies", "list_retention_policies"),
        ("get_retry_policy", "Retry policies", "get"),
        ("get_me", "Me", "get"),
    ],
)
def test_methods_do_not_repeat_the_name_of_their_resource(operation_id: str, tag: str, name: str) -> None:
    assert method_name(operation_id, tag) == name
