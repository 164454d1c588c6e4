"""Which retry policy is in force: the more specific one wins, field by field."""

from __future__ import annotations

from typing import Any

from effaced.model import PolicyScope, new_id
from effaced.retries.layers import in_force
from effaced.retries.policy import RetryPolicy

SETTINGS = RetryPolicy(max_attempts=8, base_delay=30.0)
REQUEST = new_id()


def overrides(**scopes: dict[str, Any]) -> dict[tuple[PolicyScope, str], dict[str, Any]]:
    keys = {
        "everything": (PolicyScope.GLOBAL, "*"),
        "crm": (PolicyScope.RESOLVER, "crm"),
        "request": (PolicyScope.REQUEST, str(REQUEST)),
    }
    return {keys[name]: changes for name, changes in scopes.items()}


def test_without_changes_the_settings_hold() -> None:
    assert in_force(SETTINGS, {}, {}, resolver="crm", request_id=REQUEST) == SETTINGS


def test_a_resolvers_file_wins_over_a_change_for_everything() -> None:
    changed = overrides(everything={"max_attempts": 3})
    assert in_force(SETTINGS, {"max_attempts": 5}, changed, resolver="crm").max_attempts == 5


def test_a_change_for_the_resolver_wins_over_its_file() -> None:
    changed = overrides(crm={"max_attempts": 3})
    assert in_force(SETTINGS, {"max_attempts": 5}, changed, resolver="crm").max_attempts == 3
    assert in_force(SETTINGS, {"max_attempts": 5}, changed, resolver="mail").max_attempts == 5


def test_a_change_for_the_request_wins_over_all() -> None:
    changed = overrides(everything={"max_attempts": 2}, crm={"max_attempts": 3}, request={"max_attempts": 4})
    assert in_force(SETTINGS, {}, changed, resolver="crm", request_id=REQUEST).max_attempts == 4
    assert in_force(SETTINGS, {}, changed, resolver="crm", request_id=new_id()).max_attempts == 3


def test_fields_that_nobody_changed_come_from_further_down() -> None:
    changed = overrides(everything={"jitter": True}, crm={"max_attempts": 3})
    found = in_force(SETTINGS, {}, changed, resolver="crm")
    assert (found.jitter, found.max_attempts, found.base_delay) == (True, 3, 30.0)


def test_a_change_that_is_not_valid_any_more_is_passed_over() -> None:
    changed = overrides(everything={"max_attempts": 3}, crm={"max_attempts": "many"})
    assert in_force(SETTINGS, {}, changed, resolver="crm").max_attempts == 3
