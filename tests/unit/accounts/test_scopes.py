"""What an API key may be used for."""

from __future__ import annotations

import pytest

from effaced.accounts.scopes import Scope, has_scope, parse_scopes
from effaced.core.errors import Refused


def test_scopes_are_read_in_one_order_and_once() -> None:
    words = ["operate:write", "requests:read", "operate:write"]
    assert parse_scopes(words) == (Scope.REQUESTS_READ, Scope.OPERATE_WRITE)


@pytest.mark.parametrize("words", [[], ["requests:delete"], ["requests:read", ""]])
def test_unknown_scopes_and_none_at_all_are_refused(words: list[str]) -> None:
    with pytest.raises(Refused, match="must be one or more of requests:read"):
        parse_scopes(words)


@pytest.mark.parametrize("needed", list(Scope))
def test_a_key_has_the_scopes_it_was_given(needed: Scope) -> None:
    assert has_scope([needed], needed)


@pytest.mark.parametrize(
    ("held", "needed"),
    [(Scope.REQUESTS_WRITE, Scope.REQUESTS_READ), (Scope.OPERATE_WRITE, Scope.OPERATE_READ)],
)
def test_writing_includes_reading(held: Scope, needed: Scope) -> None:
    assert has_scope([held], needed)
    assert not has_scope([needed], held)


def test_a_key_from_before_there_were_scopes_is_for_requests() -> None:
    assert [each for each in Scope if has_scope(None, each)] == [Scope.REQUESTS_READ, Scope.REQUESTS_WRITE]


def test_a_key_without_scopes_may_do_nothing() -> None:
    assert not any(has_scope([], each) for each in Scope)
