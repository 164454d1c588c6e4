from __future__ import annotations

import json
from typing import Any

import pytest
from effaced.api.bodies import RequestBody, read_body
from effaced.api.problems import ApiProblem
from flask import Flask, request
from werkzeug.exceptions import UnsupportedMediaType

from effaced.core.errors import Refused


def read(data: bytes | str, content_type: str | None = "application/json") -> RequestBody:
    app = Flask("test")
    with app.test_request_context(method="POST", data=data, content_type=content_type):
        return read_body(request, RequestBody)


def complaints(body: Any) -> dict[str, str]:
    with pytest.raises(Refused) as refused:
        read(json.dumps(body))
    return {problem.where: problem.message for problem in refused.value.problems}


def test_a_whole_body_is_read() -> None:
    body = read('{"kind": "erasure", "subject": {"id": "4711"}, "reason": "asked by phone"}')
    assert (body.kind, body.subject.id, body.reason) == ("erasure", "4711", "asked by phone")


def test_the_reason_may_be_left_out() -> None:
    assert read('{"kind": "erasure", "subject": {"id": "4711"}}').reason is None


def test_every_wrong_field_is_named_at_once() -> None:
    assert complaints({"kind": "murder", "subject": {}, "reason": 3, "extra": 1}) == {
        "kind": "must be 'erasure' or 'rectification'",
        "subject.id": "is missing",
        "reason": "must be a string",
        "extra": "is not a known field",
    }


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ([], "body", "must be an object"),
        ("text", "body", "must be an object"),
        (None, "body", "must be an object"),
        ({"kind": "erasure"}, "subject", "is missing"),
        ({"kind": "erasure", "subject": "1"}, "subject", "must be an object"),
        ({"kind": "erasure", "subject": None}, "subject", "must be an object"),
        ({"kind": "erasure", "subject": {"id": 4711}}, "subject.id", "must be a string"),
        ({"kind": "erasure", "subject": {"id": ""}}, "subject.id", "must not be empty"),
        ({"kind": "erasure", "subject": {"id": "x" * 257}}, "subject.id", "must have at most 256 characters"),
        ({"kind": "erasure", "subject": {"id": "a\0b"}}, "subject.id", "must not contain control characters"),
        ({"kind": "erasure", "subject": {"id": "1\n"}}, "subject.id", "must not contain control characters"),
        ({"kind": "erasure", "subject": {"id": "1", "name": "x"}}, "subject.name", "is not a known field"),
        ({"kind": "erasure", "subject": {"id": "1"}, "reason": ""}, "reason", "must not be empty"),
        (
            {"kind": "erasure", "subject": {"id": "1"}, "reason": "x" * 2001},
            "reason",
            "must have at most 2000 characters",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(body: Any, field: str, message: str) -> None:
    assert complaints(body) == {field: message}


def test_a_field_whose_name_may_be_personal_is_not_repeated() -> None:
    body = {"kind": "erasure", "subject": {"id": "1"}, "ada@example.org": 1}
    assert complaints(body) == {"(unprintable)": "is not a known field"}


@pytest.mark.parametrize("data", ["", "{", "nope", '{"kind": }', b"\xff\xfe", '{"a": "\\ud800"}', "[" * 5000])
def test_what_is_no_json_is_malformed(data: bytes | str) -> None:
    with pytest.raises(ApiProblem) as problem:
        read(data)
    assert problem.value.kind.slug == "malformed-json"


def test_malformed_json_is_told_its_place_but_not_repeated() -> None:
    with pytest.raises(ApiProblem) as problem:
        read('{"kind": "erasure", ada@example.org}')
    assert "line 1 column 21" in problem.value.message
    assert "ada" not in problem.value.message


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_another_media_type_is_refused(content_type: str | None) -> None:
    with pytest.raises(UnsupportedMediaType):
        read("{}", content_type)
