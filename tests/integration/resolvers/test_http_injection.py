"""A subject's value is a value: it can't change the host, the path's structure or a header."""

from __future__ import annotations

import asyncio
import json
import re
from urllib.parse import unquote
from uuid import UUID

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from effaced.core.errors import ResolverError
from effaced.model import SubjectRef

KEY = UUID("01900000-0000-7000-8000-000000000001")
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
# The vendor is shared by all examples; each looks at the last call only.
many = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def has_dot_segment(value: str) -> bool:
    return any(part in (".", "..") for part in re.split(r"[/\\]", value))


@pytest.fixture
def call(vendor, make):
    """Erase with one connection and one event loop for all examples; gives what the vendor received."""
    with asyncio.Runner() as runner:
        held = []

        def erase(value: str, **config):
            resolver = make(**config)
            held.append(resolver)
            runner.run(resolver.__aenter__())
            runner.run(resolver.erase_subject(SubjectRef("person", value), key=KEY))
            return vendor.last

        yield erase
        for resolver in held:
            runner.run(resolver.__aexit__())


@many
@given(ANY_TEXT)
@example("evil.example/")
@example("//evil.example/")
@example("@evil.example")
@example("\\\\evil.example\\")
@example("anna?admin=1#top")
@example("anna\r\nHost: evil.example\r\n\r\nDELETE /everybody HTTP/1.1")
@example("%2e%2e%2f%2e%2e")
@example("%00\x00\x7f\x1b")
@example("...")
@example(" anna ")
@example("ünïcødé 😀 \u202e")
@example("{key}{ref}")
def test_any_text_is_exactly_one_path_segment_on_the_same_host(vendor, call, value):
    assume(not has_dot_segment(value))
    got = call(value)
    head, _, segment = got.target.rpartition("/")
    assert ("/people", value) == (head, unquote(segment, errors="strict"))
    assert vendor.url.removeprefix("http://") == got.headers["Host"]
    assert re.fullmatch(r"[A-Za-z0-9\-._~%]+", segment)


@many
@given(ANY_TEXT)
@example("a&b=c;d#e?f")
@example("../../x")
def test_any_text_is_exactly_one_query_value(vendor, call, value):
    got = call(value, erase={"method": "DELETE", "path": "/people", "query": {"ref": "{ref}", "x": "1"}})
    path, _, query = got.target.partition("?")
    names = [pair.split("=")[0] for pair in query.split("&")]
    assert (path, names) == ("/people", ["ref", "x"])
    assert value == unquote(query.split("&")[0].removeprefix("ref="), errors="strict")


@many
@given(ANY_TEXT)
@example('", "admin": true, "x": "')
def test_any_text_is_exactly_one_json_value(vendor, call, value):
    got = call(value, erase={"method": "POST", "path": "/erase", "json": {"ref": "{ref}"}})
    assert {"ref": value} == json.loads(got.body)


@pytest.mark.parametrize(
    "value",
    ["", ".", "..", "../admin", "a/../../admin", "a/..", "..\\x", "a/./b", "\ud800", "x" * 70_000],
)
def test_what_has_no_safe_form_is_refused_and_nothing_is_called(vendor, make, value):
    with pytest.raises(ResolverError) as raised:
        asyncio.run(make().erase_subject(SubjectRef("person", value), key=KEY))
    assert (raised.value.code, vendor.received) == ("unsafe_ref", [])


def test_a_refusal_does_not_repeat_the_value(make):
    with pytest.raises(ResolverError) as raised:
        asyncio.run(make().erase_subject(SubjectRef("person", "anna/../bob"), key=KEY))
    assert "anna" not in f"{raised.value!r} {raised.value}"
