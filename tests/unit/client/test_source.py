"""The client has what the document describes: a method for each operation, a type for each answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from client_source import client_source, methods
from client_words import ROOT, method_name
from recorded import RECORD, assert_current

from effaced.api.catalogue import OPERATIONS
from effaced.api.openapi.document import document
from effaced.api.operations import version
from effaced.api.operations.declare import Operation
from effaced.client import VERSION, AsyncClient, Client, Conflict

FOLDER = ROOT / "effaced/client/resources"
METHODS = methods(json.loads(document()))


def test_the_resources_are_current() -> None:
    sources = client_source(json.loads(document()))
    for name, source in sources.items():
        assert_current(FOLDER / name, source)
    for path in FOLDER.glob("*.py"):
        if RECORD and path.name not in sources:
            path.unlink()
    assert {path.name for path in FOLDER.glob("*.py")} == set(sources)


@pytest.mark.skipif(RECORD, reason="those that were there before are imported")
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_every_operation_has_a_method_in_both_clients(operation: Operation) -> None:
    resource, name = METHODS[operation.id]
    for kind in (Client, AsyncClient):
        client = kind("https://effaced.example", "eff_key")
        assert callable(getattr(getattr(client, resource), name))


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
        ("purge_dead_letters", "Dead letter clean-up", "purge_dead_letters"),
    ],
)
def test_methods_do_not_repeat_the_name_of_their_resource(operation_id: str, tag: str, name: str) -> None:
    assert method_name(operation_id, tag) == name


def test_two_operations_that_would_have_one_name_keep_their_whole_ids() -> None:
    described = {"summary": "x", "description": "", "tags": ["Breakers"], "responses": {"204": {}}}
    document = {
        "tags": [{"name": "Breakers"}],
        "components": {"schemas": {}},
        "paths": {
            f"/{name}": {"get": {**described, "operationId": name}}
            for name in ("list_transitions", "list_breaker_transitions", "get_breaker")
        },
    }
    assert [name for _, name in methods(document).values()] == [
        "list_transitions",
        "list_breaker_transitions",
        "get",
    ]


def test_a_field_whose_name_python_needs_is_found_under_another_one() -> None:
    schema = {
        "properties": {"from": {"type": "string"}, "copy": {"type": "integer"}},
        "required": ["from"],
    }
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Span"}}}}
    described = {"summary": "x", "description": "", "tags": ["Spans"], "responses": {"200": answer}}
    document = {
        "tags": [{"name": "Spans"}],
        "components": {"schemas": {"Span": schema}},
        "paths": {"/span": {"get": {**described, "operationId": "get_span"}}},
    }
    names: dict[str, Any] = {}
    exec(client_source(document)["spans.py"], names)
    span = names["Span"].model_validate({"from": "a", "copy": 1})
    assert (span.from_, span.copy_) == ("a", 1)


def test_null_is_sent_where_it_says_something_else_than_nothing() -> None:
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(409, json={})

    with Client("https://effaced.example", "eff_key", transport=httpx.MockTransport(answer)) as effaced:
        calls: list[Callable[[], object]] = [
            lambda: effaced.redrives.create(filter={}, reason="back"),
            lambda: effaced.redrives.create(filter={}, reason="back", per_second=None),
            lambda: effaced.dead_letters.assign("1", assigned_to=None),
            lambda: effaced.messages.update_target("1", enabled=False),
        ]
        for call in calls:
            with pytest.raises(Conflict):
                call()
    why = {"filter": {}, "reason": "back"}
    assert sent == [why, {**why, "per_second": None}, {"assigned_to": None}, {"enabled": False}]
