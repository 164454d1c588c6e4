"""Whatever is put into any field of any operation: an error that names it, and nothing stored.

The fields are those of the document, so operations that are added are covered as they are declared.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest

from effaced.accounts.scopes import Scope
from effaced.api.catalogue import OPERATIONS
from effaced.api.openapi.document import document
from effaced.api.operations.declare import Operation

from .conftest import Api

Path = tuple[str, ...]
WRITING = [each for each in OPERATIONS if each.body]
TEXTS = {
    "NUL": "a\0b",
    "SQL": "'; DROP TABLE effaced_requests; --",
    "SQL with a quote": 'x" OR "1"="1',
    "template": "{{ 7 * 7 }}${7*7}<%= 7 %>{0.__class__}%s%n",
    "markup": "<script>alert(1)</script>",
    "path": "../../etc/passwd",
    "line ends": "a\r\nSet-Cookie: a=b",
    "right to left": "\u202eabc\u2066",
    "wide digits": "１２３",
    "last character": "\U0010ffff",
    "combining": "e" + "\u0301" * 200,
    "long": "x" * 100_000,
}
OTHERS: dict[str, Any] = {
    "huge number": 10**30,
    "negative": -(10**18),
    "fraction": 1e308,
    "list": ["x"],
    "object": {"x": "y"},
    "nested": [[[[[[{}]]]]]],
    "true": True,
}
# What is refused before the database is asked.
ON_SQLITE = pytest.mark.parametrize("shared_api", ["sqlite"], indirect=True)
NOT_UTF_8 = b'{"x": "\xff\xfe"}'
BODIES = {
    "not UTF-8": NOT_UTF_8,
    "NUL bytes": b"\0\0\0",
    "UTF-16": '{"x": 1}'.encode("utf-16"),
    "lone surrogate": b'{"x": "\\ud800"}',
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 40_000,
    "closed and deep": b"[" * 5_000 + b"]" * 5_000,
    "huge number": b'{"x": ' + b"9" * 100_000 + b"}",
    "huge exponent": b'{"x": 1e999999999}',
    "NaN": b'{"x": NaN}',
    "twins": b'{"x": 1, "x": 2}',
    "twins far inside": b'{"x": {"y": [{"z": 1, "z": 2}]}}',
    "very many fields": json.dumps({f"f{each}": 1 for each in range(15_000)}).encode(),
    "a list": b"[]",
    "a text": b'"x"',
    "nothing": b"",
    "null": b"null",
}


@dataclass(frozen=True)
class Leaf:
    """A value somewhere in a body, and what the document says of it."""

    path: Path
    schema: dict[str, Any]


@cache
def described() -> dict[str, Any]:
    return json.loads(document())  # type: ignore[no-any-return]


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = described()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    schema = resolve(schema)
    found = [schema]
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            found = [inner for each in schema[word] for inner in options(each)]
    return found


def leaves(schema: dict[str, Any], path: Path = ()) -> Iterator[Leaf]:
    for each in options(schema):
        if each.get("type") == "object" and "properties" in each:
            for name, inner in each["properties"].items():
                yield from leaves(inner, (*path, name))
        elif each.get("type") != "null":
            yield Leaf(path, each)


def minimal(schema: dict[str, Any]) -> Any:
    """Something that the schema allows."""
    for each in options(schema):
        if "const" in each or "enum" in each:
            return each.get("const", each.get("enum", [None])[0])
        match each.get("type"):
            case "object":
                return {name: minimal(each["properties"][name]) for name in each.get("required", ())}
            case "array":
                return [minimal(each["items"])] if each.get("minItems") else []
            case "string":
                examples = each.get("examples")
                return examples[0] if examples else _text(each)
            case "integer" | "number":
                return each.get("minimum", each.get("exclusiveMinimum", 0) + 1)
            case "boolean":
                return True
    return None


def _text(schema: dict[str, Any]) -> str:
    formats = {
        "date-time": "2026-03-02T09:30:00Z",
        "date": "2026-03-02",
        "uuid": "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
    }
    return formats.get(schema.get("format", ""), "x" * max(1, schema.get("minLength", 1)))


def body_schema(operation: Operation) -> dict[str, Any]:
    found = described()["paths"][operation.path][operation.method.lower()]["requestBody"]
    return found["content"]["application/json"]["schema"]  # type: ignore[no-any-return]


def arguments(operation: Operation) -> list[dict[str, Any]]:
    parameters = described()["paths"][operation.path][operation.method.lower()]["parameters"]
    return [each for each in parameters if each.get("in") == "query"]


def put(body: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    inner = body if isinstance(body, dict) else {}
    return {**inner, path[0]: put(inner.get(path[0]), path[1:], value)}


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value of this type can be there at all."""
    kind = schema.get("type")
    kinds = (
        {kind} if isinstance(kind, str) else set(kind or ["string", "number", "boolean", "object", "array"])
    )
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (
        ("string" in kinds and isinstance(value, str))
        or (bool(kinds & {"number", "integer"}) and is_number)
        or ("boolean" in kinds and isinstance(value, bool))
        or ("array" in kinds and isinstance(value, list))
        or ("object" in kinds and isinstance(value, dict))
    )


@pytest.fixture
def api(shared_api: Api) -> Api:
    return shared_api


@pytest.fixture(scope="module")
def token(shared_api: Api) -> str:
    """Of a key that may do everything; its first use, which is written down, is over."""
    made = shared_api.new_key("all", scopes=Scope)
    shared_api.get("/api/v1/requests", token=made)
    return made


def path_of(operation: Operation, value: str = "0190b6a0-0000-7000-8000-000000000000") -> str:
    return re.sub(r"<(?:int:)?\w+>", value, operation.rule)


def names(answer: Any) -> list[str]:
    assert answer.content_type == "application/problem+json", answer.text[:500]
    return [each["field"] for each in answer.get_json()["errors"]]


# --- bodies ---


def bodies_for(operation: Operation) -> Iterator[tuple[str, bytes]]:
    """All small bodies. Of the large ones, which one reader reads for all operations, one after the other."""
    small = [each for each in BODIES.items() if len(each[1]) < 1_000]
    large = [each for each in BODIES.items() if len(each[1]) >= 1_000]
    yield from (*small, large[WRITING.index(operation) % len(large)])


def strings() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for operation in OPERATIONS:
        if operation.body:
            for leaf in leaves(body_schema(operation)):
                yield operation.id, ".".join(leaf.path), leaf.schema
        for argument in arguments(operation):
            for each in options(argument["schema"]):
                yield operation.id, argument["name"], each.get("items", each)


def test_every_text_that_can_be_sent_has_a_greatest_length_or_a_form() -> None:
    unbounded = [
        (operation, where)
        for operation, where, schema in strings()
        if schema.get("type") == "string"
        and not {"maxLength", "enum", "const", "format"} & schema.keys()
        and not re.search(r"\{(\d*,)?\d+\}\$$", schema.get("pattern", ""))
    ]
    assert unbounded == []


def test_every_list_and_map_that_can_be_sent_has_a_greatest_length() -> None:
    unbounded = [
        (operation, where)
        for operation, where, schema in strings()
        if (schema.get("type") == "array" and "maxItems" not in schema)
        or (schema.get("type") == "object" and "maxProperties" not in schema)
    ]
    assert unbounded == []


@ON_SQLITE
@pytest.mark.parametrize("operation", WRITING, ids=lambda each: each.id)
def test_a_body_that_is_none_is_refused_and_stores_nothing(
    api: Api, token: str, operation: Operation
) -> None:
    before = api.rows()
    for said, data in bodies_for(operation):
        answer = api.call(
            operation.method, path_of(operation), token=token, data=data, content_type="application/json"
        )
        assert answer.status_code in (400, 422), (said, answer.status_code)
        if answer.status_code == 422:
            assert names(answer), said
        assert len(answer.data) < 20_000, said
    assert api.rows() == before


@ON_SQLITE
@pytest.mark.parametrize("operation", WRITING, ids=lambda each: each.id)
def test_a_body_of_another_kind_or_size_is_refused_as_such(
    api: Api, token: str, operation: Operation
) -> None:
    before = api.rows()
    for size, kind, status in (
        (300_000, "application/json", 413),
        (5, "text/plain", 415),
        (5, "multipart/form-data; boundary=x", 415),
    ):
        answer = api.call(
            operation.method, path_of(operation), token=token, data=b"{" * size, content_type=kind
        )
        assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert api.rows() == before


@ON_SQLITE
@pytest.mark.parametrize("operation", WRITING, ids=lambda each: each.id)
def test_a_value_that_a_field_can_not_have_is_refused_by_the_field_s_name(
    api: Api, token: str, operation: Operation
) -> None:
    schema = body_schema(operation)
    body, before = minimal(schema), api.rows()
    for leaf in leaves(schema):
        for said, value in {**OTHERS, **TEXTS}.items():
            others = [each.schema for each in leaves(schema) if each.path == leaf.path]
            if any(accepts(each, value) for each in others):
                continue
            answer = api.call(
                operation.method, path_of(operation), token=token, json=put(body, leaf.path, value)
            )
            where = ".".join(leaf.path)
            assert answer.status_code == 422, (where, said, answer.status_code)
            assert any(f"{each}.".startswith(f"{where}.") for each in names(answer)), (where, said)
    assert api.rows() == before


@pytest.mark.parametrize("operation", WRITING, ids=lambda each: each.id)
def test_any_text_in_any_field_is_taken_literally_or_refused(
    api: Api, token: str, operation: Operation, logs: list[Any]
) -> None:
    schema = body_schema(operation)
    body = minimal(schema)
    for leaf in leaves(schema):
        if leaf.schema.get("type") != "string":
            continue
        before, accepted = api.rows(), False
        for said, value in TEXTS.items():
            answer = api.call(
                operation.method, path_of(operation), token=token, json=put(body, leaf.path, value)
            )
            where = (operation.id, ".".join(leaf.path), said)
            assert answer.status_code < 500, where
            if answer.status_code >= 400:
                assert names(answer) or answer.status_code in (404, 409), where
                assert value not in answer.get_data(as_text=True), where
            if said == "long":
                assert ".".join(leaf.path) in names(answer), where
            accepted = accepted or answer.status_code < 300
            assert "49" not in re.findall(r"\b49\b", answer.get_data(as_text=True)), where
        assert accepted or api.rows() == before, leaf.path
    assert TEXTS["SQL"] not in str(logs)


@ON_SQLITE
@pytest.mark.parametrize("operation", WRITING, ids=lambda each: each.id)
def test_a_name_that_is_there_twice_is_refused_wherever_it_is(
    api: Api, token: str, operation: Operation
) -> None:
    body, before = minimal(body_schema(operation)), api.rows()
    text = json.dumps(body)
    for name in body:
        twice = f"{text[:-1]}, {json.dumps(name)}: {json.dumps(body[name])}}}"
        answer = api.call(
            operation.method, path_of(operation), token=token, data=twice, content_type="application/json"
        )
        assert answer.status_code == 422
        assert name in names(answer)
    assert api.rows() == before


# --- arguments and paths ---


def test_any_text_in_any_argument_is_taken_literally_or_refused(api: Api, token: str) -> None:
    # Each argument gets some of the texts, and each text comes to many of them.
    try_arguments(api, token, every=5)


@pytest.mark.drill
def test_every_text_in_every_argument_is_taken_literally_or_refused(api: Api, token: str) -> None:
    try_arguments(api, token, every=1)


def try_arguments(api: Api, token: str, *, every: int) -> None:
    before = api.rows()
    texts = list({**TEXTS, "empty": "", "number": "9" * 400, "list": "a,b"}.items())
    places = [(operation, argument) for operation in OPERATIONS for argument in arguments(operation)]
    for number, (operation, argument) in enumerate(places):
        for said, value in texts[number % every :: every]:
            query = f"{argument['name']}={quote(value[:20_000])}"
            answer = api.call(
                operation.method,
                f"{path_of(operation)}?{query}",
                token=token,
                json={} if operation.body else None,
            )
            where = (operation.id, argument["name"], said, answer.status_code)
            assert answer.status_code < 500, where
            if answer.status_code == 422 and operation.method == "GET":
                assert any(each.partition(".")[0] == argument["name"] for each in names(answer)), where
                assert len(value) < 3 or value not in answer.get_data(as_text=True), where
    assert {name: count for name, count in api.rows().items() if count != before[name]} == {}


@pytest.mark.parametrize(
    "query",
    ["%00=1", "a" * 5_000 + "=1", "%ff=%ff", "=", "&&&", "x[]=1", "__proto__=1", "'; --=1", "limit=%ff"],
)
def test_an_argument_that_is_none_is_refused(api: Api, token: str, query: str) -> None:
    for operation in OPERATIONS:
        if operation.method == "GET":
            answer = api.get(f"{path_of(operation)}?{query}", token=token)
            assert answer.status_code < 500
            assert answer.status_code != 200 or query in ("=", "&&&"), operation.id


def test_an_argument_that_may_be_there_once_is_refused_twice(api: Api, token: str) -> None:
    for operation in OPERATIONS:
        for argument in arguments(operation):
            if operation.method != "GET" or any(
                each.get("type") == "array" for each in options(argument["schema"])
            ):
                continue
            name = argument["name"]
            answer = api.get(f"{path_of(operation)}?{name}=1&{name}=1", token=token)
            assert answer.status_code == 422, (operation.id, name)
            (problem,) = [each for each in answer.get_json()["errors"] if each["field"] == name]
            assert problem["code"] == "repeated"


@pytest.mark.parametrize("value", [*TEXTS.values(), "%00", "%ff%fe", "0", "-1", "9" * 400, "null", "."])
def test_any_text_in_a_path_is_not_found_or_refused(api: Api, token: str, value: str) -> None:
    before = api.rows()
    text = value if value.startswith("%") else quote(value[:10_000], safe="")
    for operation in OPERATIONS:
        if operation.path_names and not (operation.method != "GET" and operation.body is None):
            answer = api.call(
                operation.method,
                path_of(operation, text),
                token=token,
                json={} if operation.body else None,
            )
            assert 300 <= answer.status_code < 500 or answer.status_code == 200, operation.id
            if answer.status_code >= 400:
                assert answer.content_type == "application/problem+json"
    assert api.rows() == before


# --- how much work it is ---


def calls_made(act: Callable[[], object]) -> int:
    """The calls of functions, ours and built in ones, that this takes: the same on every machine."""
    made = 0

    def count(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda n: b'{"a":' * n, id="deep"),
        pytest.param(lambda n: json.dumps({f"f{each}": 1 for each in range(n)}).encode(), id="many fields"),
        pytest.param(
            lambda n: b"{" + b",".join(b'"a%d":1,"a%d":1' % (each, each) for each in range(n)) + b"}",
            id="many twins",
        ),
        pytest.param(
            lambda n: json.dumps(
                {"kind": "erasure", "subject": {"id": "1"}, "metadata": {f"m{e}": 1 for e in range(n)}}
            ).encode(),
            id="many metadata",
        ),
        pytest.param(lambda n: b'{"kind": "' + b"x" * (10 * n) + b'"}', id="long text"),
        pytest.param(lambda n: b'{"kind": ' + b"9" * (10 * n) + b"}", id="long number"),
    ],
)
def test_four_times_as_much_is_at_most_four_times_the_work(
    make_api: Callable[..., Api], migrated_sqlite_url: str, write: Callable[[int], bytes]
) -> None:
    api = make_api(migrated_sqlite_url, api_calls_per_minute=0)
    api.send(write(10))  # what is made once, is made
    small, large = (calls_made(lambda size=size: api.send(write(size))) for size in (1_000, 4_000))
    assert large <= 4 * small
