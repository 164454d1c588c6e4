"""Tokens of pages: what goes in comes out, and nothing else does."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effaced.core.errors import Refused
from effaced.core.paging import Key, decode, encode, page_of

moments = st.datetimes(timezones=st.just(UTC)).filter(lambda moment: 1 < moment.year < 9999)
keys = st.one_of(
    st.tuples(st.integers(min_value=0, max_value=2**63 - 1)),
    st.tuples(moments, st.uuids()),
    st.tuples(st.text(st.characters(exclude_characters="\0"), max_size=30), st.uuids()),
)


@given(keys)
def test_a_token_gives_back_the_key_it_was_made_of(key: Key) -> None:
    assert decode(encode(key), *(type(value) for value in key)) == key


@given(keys)
def test_a_token_needs_no_quoting_in_a_url(key: Key) -> None:
    assert set(encode(key)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(st.text(max_size=60))
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        decode(text, datetime, UUID)


def token(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        None,
        7,
        [["i", 7]],
        [["t", "2026-03-02T12:00:00"], ["u", "0" * 32]],
        [["t", "yesterday"], ["u", "0" * 32]],
        [["t", "2026-03-02T12:00:00+00:00"], ["u", "short"]],
        [["x", 1], ["u", "0" * 32]],
        [["t", "2026-03-02T12:00:00+00:00"], ["u", "0" * 32], ["i", 1]],
    ],
)
def test_a_token_of_another_list_is_refused(content: object) -> None:
    with pytest.raises(Refused, match="Start again at the top"):
        decode(token(content), datetime, UUID)


def test_a_page_that_is_not_the_last_names_the_next_one() -> None:
    page = page_of(["a", "b", "c"], 2, [(1,), (2,), (3,)])
    assert page.items == ("a", "b")
    assert decode(page.next or "", int) == (2,)


def test_the_last_page_names_none() -> None:
    assert page_of(["a", "b"], 2, [(1,), (2,)]).next is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("i", 10**30),
        ("i", float("inf")),
        ("t", "0001-01-01T00:00:00+14:00"),
        ("t", "9999-12-31T23:59:59-14:00"),
        ("s", "a\0b"),
        ("s", "a\ud800b"),
    ],
)
def test_a_forged_key_that_no_database_could_hold_is_refused(kind: str, value: object) -> None:
    token = base64.urlsafe_b64encode(json.dumps([[kind, value]]).encode()).decode()
    with pytest.raises(Refused):
        decode(token, {"i": int, "t": datetime, "s": str}[kind])
