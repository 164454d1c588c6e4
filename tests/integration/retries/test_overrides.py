"""Policies changed at run time: who may differ in what, in which order, and what the trail says of it."""

from __future__ import annotations

from typing import Any

import pytest
from saga_cast import House

from effaced.core.clock import ManualClock
from effaced.core.errors import Conflict, Refused
from effaced.model import PolicyKind, PolicyScope, new_id
from effaced.retries.layers import in_force
from effaced.retries.overrides import (
    Merge,
    Override,
    Target,
    beside,
    check_rate,
    get_override,
    list_overrides,
    read_bodies,
    set_override,
    undo_override,
)
from effaced.retries.policy import RetryPolicy, check_changes

EVERYTHING = Target(PolicyKind.RETRY)
CRM = Target(PolicyKind.RETRY, PolicyScope.RESOLVER, "crm")
REQUEST = new_id()
OURS = Target(PolicyKind.RETRY, PolicyScope.REQUEST, str(REQUEST))


def change(house: House, target: Target, merge: Merge | None = None, **changes: Any) -> Override:
    with house.db.begin() as session:
        return set_override(session, target, changes, check=check_changes, actor="cli", merge=merge)


def back(house: House, target: Target) -> Override:
    with house.db.begin() as session:
        return undo_override(session, target, actor="cli")


def now(house: House, target: Target) -> Override | None:
    with house.db.read() as session:
        return get_override(session, target)


def policy(house: House, file: dict[str, Any] | None = None) -> RetryPolicy:
    """What is in force for the request's call to the CRM, and for no other reason than this."""
    with house.db.read() as session:
        bodies = read_bodies(session, PolicyKind.RETRY, resolvers=["crm"], requests=[REQUEST])
    return in_force(RetryPolicy(max_attempts=2), file or {}, bodies, resolver="crm", request_id=REQUEST)


class TestPrecedence:
    def test_each_wins_over_the_one_before(self, house: House) -> None:
        """R1: settings < everything < the resolver's file < the resolver < the request."""
        assert policy(house).max_attempts == 2
        change(house, EVERYTHING, max_attempts=3)
        assert policy(house).max_attempts == 3
        assert policy(house, {"max_attempts": 4}).max_attempts == 4
        change(house, CRM, max_attempts=5)
        assert policy(house, {"max_attempts": 4}).max_attempts == 5
        change(house, OURS, max_attempts=6)
        assert policy(house, {"max_attempts": 4}).max_attempts == 6

    def test_each_changes_only_the_fields_it_names(self, house: House) -> None:
        change(house, EVERYTHING, jitter=True)
        change(house, CRM, multiplier=3)
        change(house, OURS, timeout=60)
        found = policy(house, {"max_attempts": 4})
        expected = RetryPolicy(max_attempts=4, jitter=True, multiplier=3, timeout=60)
        assert expected == found

    def test_nobody_else_is_touched(self, house: House) -> None:
        change(house, CRM, max_attempts=5)
        change(house, OURS, max_attempts=6)
        with house.db.read() as session:
            bodies = read_bodies(session, PolicyKind.RETRY, resolvers=["mail"], requests=[new_id()])
        assert bodies == {}

    def test_one_that_cannot_be_used_is_passed_over(self, house: House) -> None:
        bodies = {(PolicyScope.RESOLVER, "crm"): {"from_the_future": 1}}
        found = in_force(RetryPolicy(), {"max_attempts": 4}, bodies, resolver="crm")
        assert found == RetryPolicy(max_attempts=4)


class TestPut:
    def test_says_exactly_what_differs(self, house: House, noon: ManualClock) -> None:
        change(house, CRM, max_attempts=5, jitter=True)
        kept = change(house, CRM, max_attempts=6)
        assert (kept.body, kept.previous) == ({"max_attempts": 6}, {"max_attempts": 5, "jitter": True})
        assert (kept.version, kept.changed_at, kept.changed_by) == (2, noon(), "cli")
        assert now(house, CRM) == kept

    def test_with_merge_what_differed_before_stays(self, house: House) -> None:
        change(house, CRM, max_attempts=5, jitter=True)
        assert change(house, CRM, merge=beside, max_attempts=6).body == {"max_attempts": 6, "jitter": True}

    def test_refused_it_changes_nothing(self, house: House) -> None:
        with pytest.raises(Refused):
            change(house, CRM, max_attempts=500)
        assert now(house, CRM) is None
        assert house.events() == []

    def test_of_what_is_so_already_is_no_event(self, house: House) -> None:
        change(house, CRM, max_attempts=5)
        assert change(house, CRM, max_attempts=5).version == 1
        assert house.types() == ["POLICY_CHANGED"]

    def test_of_nothing_takes_it_away(self, house: House) -> None:
        change(house, CRM, max_attempts=5)
        change(house, CRM)
        assert policy(house).max_attempts == 2
        with house.db.read() as session:
            assert list_overrides(session, PolicyKind.RETRY) == []

    def test_is_in_the_trail_with_fields_and_figures_only(self, house: House) -> None:
        change(house, CRM, retry_status_codes=[429, 503], max_attempts=5)
        change(house, CRM, base_delay=2)
        assert [each.actor for each in house.events()] == ["cli", "cli"]
        assert house.events()[1].payload == {
            "kind": "retry",
            "scope": "resolver",
            "key": "crm",
            "version": 2,
            "fields": [
                {"field": "base_delay", "now": ["2.0"]},
                {"field": "max_attempts", "was": ["5"]},
                {"field": "retry_status_codes", "was": ["429", "503"]},
            ],
        }

    def test_of_a_request_is_in_the_requests_trail(self, house: House) -> None:
        change(house, OURS, max_attempts=1)
        assert [each.request_id for each in house.events("POLICY_CHANGED")] == [REQUEST]


class TestUndo:
    def test_goes_back_by_one_change_and_is_an_event(self, house: House) -> None:
        change(house, CRM, max_attempts=5)
        change(house, CRM, max_attempts=6)
        assert back(house, CRM).body == {"max_attempts": 5}
        assert policy(house).max_attempts == 5
        assert house.types() == ["POLICY_CHANGED", "POLICY_CHANGED", "POLICY_UNDONE"]

    def test_of_the_first_change_leaves_nothing_that_differs(self, house: House) -> None:
        change(house, CRM, max_attempts=5)
        assert back(house, CRM).body == {}

    def test_of_taking_away_brings_it_back(self, house: House) -> None:
        change(house, CRM, max_attempts=5)
        change(house, CRM)
        assert back(house, CRM).body == {"max_attempts": 5}

    def test_twice_is_the_change_again(self, house: House) -> None:
        change(house, CRM, max_attempts=5)
        back(house, CRM)
        assert back(house, CRM).body == {"max_attempts": 5}

    def test_of_nothing_is_refused(self, house: House) -> None:
        with pytest.raises(Conflict):
            back(house, CRM)


class TestOtherKinds:
    def test_kinds_do_not_meet(self, house: House) -> None:
        rate = Target(PolicyKind.RATE, PolicyScope.RESOLVER, "crm")
        with house.db.begin() as session:
            set_override(session, rate, {"rate_per_second": 2.5}, check=check_rate, actor="system")
        change(house, CRM, max_attempts=5)
        with house.db.read() as session:
            both = [each.target for each in list_overrides(session, PolicyKind.RETRY, PolicyKind.RATE)]
            assert both == [rate, CRM]
            assert [each.target for each in list_overrides(session, PolicyKind.RATE)] == [rate]

    @pytest.mark.parametrize("rate", [0, -1, True, "5", 100_001, float("nan"), None])
    def test_a_rate_out_of_bounds_is_refused(self, rate: Any) -> None:
        with pytest.raises(Refused) as told:
            check_rate({"rate_per_second": rate})
        assert [each.where for each in told.value.problems] == ["rate_per_second"]
