"""Whatever is sent: an answer that says what is wrong, never a 500, and no row for what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

Api = Any
TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KNOWN = st.sampled_from(["1", "2", "3"])
# Near misses: mostly right, with one thing or another wrong.
ALMOST = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["erasure", "rectification"]) | JSON,
        "corrections": st.dictionaries(
            st.sampled_from(["name", "points", "birthday"]) | TEXT, JSON, max_size=3
        )
        | JSON,
        "subject": st.fixed_dictionaries({}, optional={"id": KNOWN | TEXT | JSON, "email": JSON}) | JSON,
        "reason": TEXT | JSON,
        "reference": TEXT,
    },
)


@pytest.fixture
def open_api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    return make_api(migrated_url)


def check(api: Api, data: bytes) -> None:
    before = api.rows()
    answer = api.send(data)
    if answer.status_code in (200, 201):
        assert answer.get_json()["kind"] in ("erasure", "rectification")
        return
    assert answer.status_code in (400, 422)
    assert answer.content_type == "application/problem+json"
    assert answer.get_json()["detail"]
    assert api.rows() == before


_quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_quick
@given(st.binary(max_size=60))
@example(b'{"kind":"erasure","subject":{"id":"\\u0000"}}')
@example(b'{"kind":"erasure","subject":{"id":"1","id":"2"}}')
@example(b'{"kind":"erasure","subject":{"id":NaN}}')
@example(b'\xef\xbb\xbf{"kind":"erasure","subject":{"id":"1"}}')
@example(b'{"a":' * 3000)
@example(b"9" * 6000)
def test_any_bytes(open_api: Api, data: bytes) -> None:
    check(open_api, data)


@_quick
@given(ALMOST | JSON)
@example({"kind": "erasure", "subject": {"id": "\ud800"}})
@example({"kind": "erasure", "subject": {"id": "1"}, "reason": "\x00"})
@example({"kind": "erasure", "subject": {"id": "1"}, "reason": "\u2028"})
@example({"kind": "erasure", "subject": {"id": "１"}})
def test_any_json(open_api: Api, body: Any) -> None:
    check(open_api, json.dumps(body).encode())
