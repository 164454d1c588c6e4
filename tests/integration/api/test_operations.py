"""Every operation and every scope, as the catalogue and the document declare them.

Nothing here names an operation: those that are added are covered as they are declared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask

from effaced.accounts.scopes import Scope, has_scope
from effaced.api.catalogue import OPERATIONS
from effaced.api.openapi.document import document
from effaced.api.operations.declare import Operation
from effaced.api.operations.version import CURRENT

from .conftest import Api

# Below /api/, and open to everybody: they are about the API and hold nothing of this installation.
DESCRIPTIONS = re.compile(r"/api/v1/(openapi\.json|docs(/.*)?)")
NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    """A caller who may call as often as they like."""
    return make_api(migrated_url, api_calls_per_minute=0)


def call(api: Api, operation: Operation, token: str | None, **headers: str) -> Any:
    """Call it as somebody does who knows nothing: for what is not there, with an empty body."""
    path = re.sub(r"<(?:int:)?\w+>", NOBODY, operation.rule)
    body = {} if operation.body else None
    if token is None:
        return api.app.test_client().open(path, method=operation.method, json=body, headers=headers)
    return api.call(operation.method, path, token=token, json=body, headers=headers)


def lacks_scope(answer: Any) -> bool:
    codes = [each["code"] for each in answer.get_json()["errors"]] if answer.status_code == 403 else []
    return "missing_scope" in codes


def declared() -> dict[str, tuple[str, ...]]:
    """Operation by operation the scopes of which one will do, as the document says."""
    paths: dict[str, dict[str, Any]] = json.loads(document())["paths"]
    return {
        operation["operationId"]: tuple(
            scope for needed in operation["security"] for scope in needed["apiKey"]
        )
        for methods in paths.values()
        for operation in methods.values()
    }


def routes(app: Flask) -> Iterator[tuple[str, str]]:
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            yield method, rule.rule


# --- which operations there are ---


def test_every_route_below_api_is_a_declared_operation(api: Api) -> None:
    known = {(each.method, each.rule) for each in OPERATIONS}
    strangers = [
        (method, rule)
        for method, rule in routes(api.app)
        if rule.startswith("/api") and (method, rule) not in known and not DESCRIPTIONS.fullmatch(rule)
    ]
    assert strangers == []
    assert known <= set(routes(api.app))


def test_every_operation_has_a_name_of_its_own_and_is_in_the_document() -> None:
    assert sorted(declared()) == sorted(each.id for each in OPERATIONS)


def test_every_operation_says_who_may_call_it_or_that_every_key_may() -> None:
    assert declared() == {each.id: each.scopes for each in OPERATIONS}
    open_to_all = [each.id for each in OPERATIONS if not each.scopes]
    # What a key learns of itself, and what the types of events are in any installation. Anything else that
    # every key may call has to be argued for here.
    assert open_to_all == [each for each in open_to_all if each in ("get_me", "list_event_types")]


def test_every_operation_has_a_summary_and_an_answer() -> None:
    assert [each.id for each in OPERATIONS if not each.summary or len(each.summary) > 120] == []
    unclear = [each.id for each in OPERATIONS if not (each.answer or each.media_types)]
    assert [each.id for each in OPERATIONS if each.id in unclear and each.method == "GET"] == []


def test_reading_takes_no_body_and_has_no_secrets() -> None:
    reading = [each for each in OPERATIONS if each.method == "GET"]
    assert [each.id for each in reading if each.body or each.secrets] == []


def test_what_is_shown_once_may_be_missing_in_the_answer() -> None:
    for operation in OPERATIONS:
        for path in operation.secrets:
            assert operation.answer is not None
            whole = operation.answer.model_json_schema(mode="serialization")
            schema: dict[str, Any] = whole
            for name in path.split("."):
                options = [schema, *schema.get("anyOf", [])]
                names = [each["$ref"].rpartition("/")[2] for each in options if "$ref" in each]
                named = [whole["$defs"][each] for each in names]
                schema = next(each["properties"][name] for each in (*options, *named) if "properties" in each)
            assert {"type": "null"} in schema.get("anyOf", []), f"{operation.id}: {path} is null in a replay"


def test_a_sandbox_key_can_call_only_what_can_be_called_with_its_scopes() -> None:
    for operation in OPERATIONS:
        if operation.sandbox and operation.scopes:
            requests = (Scope.REQUESTS_READ, Scope.REQUESTS_WRITE)
            assert [each for each in operation.scopes if each in requests], operation.id


# --- who may call them ---


def test_each_scope_opens_exactly_the_operations_that_name_it(api: Api) -> None:
    needed = declared()
    wrong = []
    for scope in Scope:
        token = api.new_key(scope, scopes=[scope])
        for operation in OPERATIONS:
            scopes = needed[operation.id]
            may = not scopes or any(has_scope([scope], Scope(each)) for each in scopes)
            answer = call(api, operation, token)
            if lacks_scope(answer) is may or answer.status_code in (401, 500):
                wrong.append((operation.id, scope.value, answer.status_code))
    assert wrong == []


def test_a_refusal_names_the_scopes_that_would_do(api: Api) -> None:
    token = api.new_key("nothing", scopes=[])
    for operation in OPERATIONS:
        if operation.scopes:
            answer = call(api, operation, token)
            assert answer.status_code == 403
            assert answer.get_json()["errors"] == [
                {
                    "field": "Authorization",
                    "code": "missing_scope",
                    "message": f"needs the scope {' or '.join(operation.scopes)}",
                }
            ]
            assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize("token", [None, "", "nonsense", f"eff_{'a' * 8}_{'a' * 32}"])
def test_nothing_opens_without_a_known_key(api: Api, token: str | None) -> None:
    before = api.rows()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answers = [call(api, operation, None, **headers) for operation in OPERATIONS]
    assert {answer.status_code for answer in answers} == {401}
    assert api.rows() == before


def test_a_sandbox_key_is_refused_wherever_it_is_not_declared(api: Api) -> None:
    token = api.new_key("sandbox", scopes=Scope, sandbox=True)
    before = api.rows()
    for operation in OPERATIONS:
        if not operation.sandbox:
            answer = call(api, operation, token)
            assert answer.status_code == 403, operation.id
            assert [each["code"] for each in answer.get_json()["errors"]] == ["sandbox_key"]
    assert api.rows() == before


def test_nobody_s_thing_is_not_found_and_changes_nothing(api: Api) -> None:
    token = api.new_key("all", scopes=Scope)
    _ = api.runtime.plan
    call(api, OPERATIONS[0], token)  # the use of the key is recorded
    before = api.rows()
    for operation in OPERATIONS:
        if operation.path_names and operation.body is None:
            answer = call(api, operation, token)
            assert 400 <= answer.status_code < 500, (operation.id, answer.status_code)
            assert answer.content_type == "application/problem+json"
    assert api.rows() == before


# --- versions ---


@pytest.mark.parametrize("version", ["", "1", "2020-01-01", f"{CURRENT}x", "latest", "x" * 5_000, "\xe9"])
def test_a_version_that_is_not_served_is_refused(api: Api, version: str) -> None:
    before = api.rows()
    for operation in OPERATIONS:
        answer = call(api, operation, api.token, **{"Effaced-Version": version})
        assert answer.status_code == 400
        body = answer.get_json()
        assert body["type"] == "urn:effaced:problem:unknown-version"
        assert body["errors"] == [
            {
                "field": "Effaced-Version",
                "code": "not_allowed",
                "message": f"must be {CURRENT}, or be left out",
            }
        ]
    assert api.rows() == before


def test_every_answer_of_the_api_says_its_version(api: Api) -> None:
    client = api.app.test_client()
    answers = [
        *(call(api, operation, api.token) for operation in OPERATIONS),
        *(call(api, operation, api.token, **{"Effaced-Version": CURRENT}) for operation in OPERATIONS),
        *(call(api, operation, api.token, **{"Effaced-Version": "1"}) for operation in OPERATIONS),
        *(call(api, operation, None) for operation in OPERATIONS),
        *(client.get(path) for path in ("/api/v1", "/api/v1/", "/api/v1/x", "/api/v1/openapi.json")),
        client.patch("/api/v1/requests"),
        client.options("/api/v1/requests"),
    ]
    assert {answer.headers.get("Effaced-Version") for answer in answers} == {CURRENT}
    elsewhere = [
        client.get(path) for path in ("/healthz", "/console/sign-in", "/api/v2/requests", "/api/v1x")
    ]
    assert {answer.headers.get("Effaced-Version") for answer in elsewhere} == {None}


# --- HTTP ---


def test_a_method_that_is_not_there_is_told_the_right_ones(api: Api) -> None:
    methods: dict[str, set[str]] = {}
    for operation in OPERATIONS:
        methods.setdefault(operation.rule, set()).add(operation.method)
    known = api.app.url_map.bind("localhost")
    for rule, allowed in methods.items():
        path = re.sub(r"<(?:int:)?\w+>", NOBODY, rule)
        for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - allowed:
            if known.test(path, method):
                continue  # the path is another operation's as well
            answer = api.call(method, path)
            assert (answer.status_code, answer.content_type) == (405, "application/problem+json")
            assert allowed <= set(answer.headers["Allow"].split(", "))


def test_head_is_answered_as_get_is_and_without_a_body(api: Api) -> None:
    for operation in OPERATIONS:
        if operation.method == "GET":
            path = re.sub(r"<(?:int:)?\w+>", NOBODY, operation.rule)
            assert api.call("HEAD", path).status_code == api.get(path).status_code
            assert api.call("HEAD", path).data == b""
            assert api.app.test_client().head(path).status_code == 401
