"""May I call, and what came of it (P1, P3, P4 and the rules of SEMANTICS), on every store."""

from __future__ import annotations

from asyncio import CancelledError
from datetime import timedelta
from typing import Any

import pytest
from breaker_cast import API, CRM, FAILURE, NEUTRAL, NOON, SUCCESS, Heard, registry, seconds

from effaced.breakers.admission import BUDGET, COOLDOWN, PINNED
from effaced.breakers.admitted import Permit
from effaced.breakers.listeners import BreakerListener
from effaced.breakers.model import BreakerOpenError, BreakerRole, BreakerState, Transition
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.breakers.policy import BreakerPolicies
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.repository import CircuitBreakerStateRepository as Repository
from effaced.breakers.stores.base import BreakerStore
from effaced.core.clock import ManualClock
from effaced.core.errors import Conflict, Refused
from effaced.core.http_clients import retry_after
from effaced.model import FailureKind

pytestmark = pytest.mark.usefixtures("now")
HOST = "api.example"


def overloaded(wait: float, status: int = 503) -> Outcome:
    return Outcome(OutcomeKind.FAILURE, status, seconds(wait))


def fail(calls: BreakerRegistry, times: int = 1, **about: object) -> None:
    for _ in range(times):
        calls.on_failure(calls.allow(HOST, "crm", **about), status=500)  # type: ignore[arg-type]


def denied(calls: BreakerRegistry, host: str | None = HOST, resolver: str | None = "crm") -> BreakerOpenError:
    with pytest.raises(BreakerOpenError) as caught:
        calls.allow(host, resolver)
    return caught.value


class TestOrder:
    """P1: pin, cooldown, host, resolver, half-open budget."""

    def test_a_pin_comes_before_a_cooldown(self, store: BreakerStore) -> None:
        calls = registry(store)
        calls.on_failure(calls.allow(None, "crm"), status=503, retry_after_s=600)
        calls.force_open(CRM, seconds=60, actor="cli")
        assert denied(calls).reason == PINNED

    def test_a_resolver_s_cooldown_comes_before_an_open_host(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1)
        calls.on_failure(calls.allow(HOST, None), status=500)
        Repository(store).update_state(CRM, "closed")
        registry(store, fail_max=9).on_failure(calls.allow(None, "crm"), status=503, retry_after_s=5)
        error = denied(calls)
        assert (error.service_name, error.reason) == (CRM, COOLDOWN)

    def test_a_host_comes_before_its_resolver(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1)
        fail(calls)
        assert denied(calls).service_name == API

    def test_a_resolver_is_asked_when_its_host_is_well(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1)
        calls.on_failure(calls.allow(None, "crm"), status=500)
        assert denied(calls).service_name == CRM
        assert calls.allow(HOST, "mail").granted == 1

    def test_the_budget_comes_last(self, store: BreakerStore, now: ManualClock) -> None:
        calls = registry(store, fail_max=1)
        fail(calls)
        now.advance(seconds(60))
        calls.allow(HOST, "crm")
        assert denied(calls).reason == BUDGET

    def test_a_pin_to_closed_lets_through_whatever_its_own_breaker_says(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1)
        calls.on_failure(calls.allow(None, "crm"), status=503, retry_after_s=600)
        calls.force_close(CRM, seconds=60, actor="cli")
        assert calls.allow(None, "crm").granted == 1

    def test_a_pin_to_closed_does_not_speak_for_the_host(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1)
        fail(calls)
        calls.force_close(CRM, seconds=60, actor="cli")
        assert denied(calls).service_name == API


class TestArguments:
    @pytest.mark.parametrize("name", [" ", "bad\nname", "a" * 250])
    def test_a_name_that_no_breaker_has_is_refused(self, store: BreakerStore, name: str) -> None:
        calls = registry(store)
        for ask in (calls.admit, calls.retry_at, lambda each: calls.allow(each), calls.current_state):
            with pytest.raises(Refused, match="must be resolver:NAME or host:NAME"):
                ask(name)
        with pytest.raises(Refused, match="must be resolver:NAME or host:NAME"):
            calls.force_open(f"resolver:{name}", actor="cli")
        assert store.load_all() == []

    def test_a_wrong_type_is_named_by_its_argument(self, store: BreakerStore) -> None:
        calls: Any = registry(store)
        for argument, ask in (
            ("resolver", lambda: calls.allow(resolver=5)),
            ("resolver", lambda: calls.admit(5)),
            ("role", lambda: calls.allow(resolver="crm", role="artifact")),
            ("role", lambda: calls.admit("crm", role="artifact")),
            ("most", lambda: calls.admit("crm", most="3")),
            ("name", lambda: calls.reset(5, actor="cli")),
            ("actor", lambda: calls.reset(CRM, actor=5)),
            ("until", lambda: calls.force_open(CRM, actor="cli", until="tomorrow")),
        ):
            with pytest.raises(TypeError, match=rf"\b{argument} must be"):
                ask()

    def test_fewer_calls_than_none_are_refused(self, store: BreakerStore) -> None:
        with pytest.raises(Refused, match="most must be at least 0"):
            registry(store).admit("crm", most=-3)

    def test_a_host_is_the_same_in_any_case(self, store: BreakerStore) -> None:
        calls = registry(store)
        calls.force_open("host:API.example", actor="cli")
        assert denied(calls).service_name == API

    def test_the_end_of_a_pin_needs_a_time_zone(self, store: BreakerStore) -> None:
        with pytest.raises(Refused, match="until must have a time zone"):
            registry(store).force_open(CRM, actor="cli", until=NOON.replace(tzinfo=None))


class TestDenial:
    """P1."""

    def test_carries_the_time_that_remains_until_the_last_of_them_lets_go(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        calls = registry(store, fail_max=1)
        calls.settle(calls.admit("crm", HOST), [overloaded(300)])
        now.advance(seconds(10))
        error = denied(calls)
        assert (seconds(290), NOON + seconds(300)) == (error.remaining, error.retry_at)
        assert "290 seconds" in str(error)

    def test_changes_nothing(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1)
        fail(calls)
        before = store.load_all()
        denied(calls)
        assert before == store.load_all()


class TestClosed:
    def test_nothing_is_written_while_all_goes_well(self, store: BreakerStore) -> None:
        calls = registry(store)
        admission = calls.admit("crm", HOST, most=10)
        assert (admission.granted, admission.trial) == (10, False)
        assert calls.settle(admission, [SUCCESS] * 7 + [NEUTRAL] * 2, unused=1) == ()
        assert store.load_all() == []

    def test_the_failure_that_reaches_fail_max_in_a_row_opens_both(self, store: BreakerStore) -> None:
        """P4."""
        heard = Heard()
        calls = registry(store, heard, fail_max=3)
        fail(calls, 2)
        calls.on_success(calls.allow(HOST, "crm"))
        fail(calls, 3)
        assert heard.moves == [(API, "closed", "open"), (CRM, "closed", "open")]
        assert {each.reason for each in heard.transitions} == {"consecutive_failures"}
        assert calls.retry_at("crm", HOST) == NOON + seconds(60)

    def test_a_flush_counts_in_the_order_of_its_calls(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=3)
        assert calls.settle(calls.admit("crm", most=5), [FAILURE, FAILURE, SUCCESS, FAILURE, FAILURE]) == ()
        (opened,) = calls.settle(calls.admit("crm"), [FAILURE])
        assert opened.new is BreakerState.OPEN

    def test_many_within_a_window_open_in_spite_of_successes_with_a_cooldown_of_their_own(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        """P4: rolling."""
        rolling = {"enabled": True, "window_s": 30, "threshold_failures": 4, "cooldown_s": 17}
        calls = registry(store, fail_max=100, rolling=rolling)
        for _ in range(3):
            calls.settle(calls.admit("crm", most=2), [FAILURE, SUCCESS])
            now.advance(seconds(5))
        now.advance(seconds(16))  # the first of them is out of the window
        assert calls.settle(calls.admit("crm"), [FAILURE]) == ()
        (opened,) = calls.settle(calls.admit("crm"), [FAILURE])
        assert (opened.reason, opened.reset_timeout_s) == ("rolling_failures", 17.0)

    def test_what_a_policy_calls_neutral_decides_nothing(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1, classify={"neutral_statuses": [500]})
        calls.on_failure(calls.allow(None, "crm"), status=404)
        calls.on_failure(calls.allow(None, "crm"), status=500)
        calls.on_neutral(calls.allow(None, "crm"))
        assert calls.current_state(resolver="crm") is BreakerState.CLOSED
        assert store.load_all() == []


class TestClassification:
    """Host and resolver each by their own policy."""

    def both(self, store: BreakerStore) -> BreakerRegistry:
        tree = {
            "defaults": {"fail_max": 1},
            "hosts": {HOST: {"classify": {"neutral_statuses": [503]}}},
            "resolvers": {"crm": {"classify": {"neutral_statuses": [500]}}},
        }
        return BreakerRegistry(store, BreakerPolicies(tree))

    @pytest.mark.parametrize(("status", "opened"), [(500, HOST), (503, "crm"), (502, "both")])
    def test_a_status_counts_only_where_it_is_a_failure(
        self, store: BreakerStore, status: int, opened: str
    ) -> None:
        calls = self.both(store)
        outcome = calls.classify("crm", HOST, BreakerRole.ERASE, status, FailureKind.TRANSIENT)
        calls.settle(calls.admit("crm", HOST), [outcome])
        states = (
            calls.current_state(host=HOST) is BreakerState.OPEN,
            calls.current_state(resolver="crm") is BreakerState.OPEN,
        )
        assert states == (opened in (HOST, "both"), opened in ("crm", "both"))

    @pytest.mark.parametrize(("status", "opened"), [(500, HOST), (503, "crm")])
    def test_so_does_a_single_call_s(self, store: BreakerStore, status: int, opened: str) -> None:
        calls = self.both(store)
        calls.on_failure(calls.allow(HOST, "crm"), status=status)
        assert (calls.current_state(host=HOST) is BreakerState.OPEN) == (opened == HOST)
        assert (calls.current_state(resolver="crm") is BreakerState.OPEN) == (opened == "crm")


class TestClockSetBack:
    """Waits keep their length, in every store."""

    def test_a_cooldown_of_a_minute_takes_no_hour(self, store: BreakerStore, now: ManualClock) -> None:
        calls = registry(store)
        calls.settle(calls.admit("crm", HOST), [overloaded(60)])
        now.advance(seconds(-3_600))
        assert calls.cooldown_remaining_ms(HOST, "crm") == 60_000
        assert calls.retry_at("crm", HOST) == now() + seconds(60)
        now.advance(seconds(30))
        assert calls.cooldown_remaining_ms(HOST, "crm") == 30_000, "restarted once, not at every read"
        now.advance(seconds(30))
        assert calls.allow(HOST, "crm").granted == 1

    def test_an_open_breaker_waits_no_longer(self, store: BreakerStore, now: ManualClock) -> None:
        calls = registry(store, fail_max=1)
        fail(calls)
        now.advance(seconds(-3_600))
        assert calls.blocked([("crm", HOST)]) == {"crm": now() + seconds(60)}

    def test_a_pin_ends_on_the_date_that_was_named(self, store: BreakerStore, now: ManualClock) -> None:
        calls = registry(store)
        calls.force_open(CRM, until=NOON + seconds(60), actor="cli")
        now.advance(seconds(-3_600))
        assert calls.retry_at("crm") == NOON + seconds(60)


class TestTrials:
    @pytest.fixture
    def calls(self, store: BreakerStore, now: ManualClock) -> BreakerRegistry:
        """Opened, and the wait is over."""
        calls = registry(store, fail_max=1)
        fail(calls)
        now.advance(seconds(60))
        return calls

    def test_success_closes_and_failure_opens_again(self, calls: BreakerRegistry, now: ManualClock) -> None:
        fail(calls)
        assert calls.current_state(HOST, "crm") is BreakerState.OPEN
        now.advance(seconds(120))
        calls.on_success(calls.allow(HOST, "crm"))
        assert calls.current_state(HOST, "crm") is BreakerState.CLOSED

    def test_the_wait_doubles_to_15_minutes_while_trials_fail_and_is_short_again_after_a_close(
        self, calls: BreakerRegistry, now: ManualClock
    ) -> None:
        """SEMANTICS 7: a vendor that is down for two days is asked now and then."""
        waits = []
        for _ in range(6):
            fail(calls)
            at = calls.retry_at("crm", HOST)
            assert at is not None
            waits.append((at - now()).total_seconds())
            now.advance(at - now())
        assert waits == [120, 240, 480, 900, 900, 900]
        calls.on_success(calls.allow(HOST, "crm"))
        fail(calls)
        assert calls.retry_at("crm", HOST) == now() + seconds(60)

    def test_two_good_ones_close_where_two_are_asked_for_and_one_may_run(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        """B7 through the registry."""
        calls = registry(store, fail_max=1, success_threshold=2, trial_calls=1)
        fail(calls)
        now.advance(seconds(60))
        calls.on_success(calls.allow(HOST, "crm"))
        assert calls.current_state(HOST, "crm") is BreakerState.HALF_OPEN
        calls.on_success(calls.allow(HOST, "crm"))
        assert calls.current_state(HOST, "crm") is BreakerState.CLOSED

    def test_a_neutral_outcome_decides_nothing_and_frees_its_slot(self, calls: BreakerRegistry) -> None:
        calls.on_neutral(calls.allow(HOST, "crm"))
        assert calls.current_state(HOST, "crm") is BreakerState.HALF_OPEN
        calls.allow(HOST, "crm")

    def test_what_was_admitted_and_not_called_frees_its_slot(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        calls = registry(store, fail_max=1, trial_calls=3)
        fail(calls)
        now.advance(seconds(60))
        admission = calls.admit("crm", HOST, most=10)
        assert (admission.granted, admission.trial) == (3, True)
        calls.settle(admission, [], unused=2)
        assert calls.admit("crm", HOST, most=10).granted == 2

    def test_outcomes_may_be_told_in_parts(self, store: BreakerStore, now: ManualClock) -> None:
        calls = registry(store, fail_max=1, trial_calls=3, success_threshold=3)
        fail(calls)
        now.advance(seconds(60))
        admission = calls.admit("crm", HOST, most=3)
        calls.settle(admission, [SUCCESS])
        calls.settle(admission, [SUCCESS])
        assert calls.admit("crm", HOST, most=3).granted == 2
        closed = calls.settle(admission, [SUCCESS])
        assert [each.new for each in closed] == [BreakerState.CLOSED] * 2

    def test_each_role_has_its_own(self, calls: BreakerRegistry) -> None:
        """P4."""
        for role in BreakerRole:
            assert calls.allow(HOST, "crm", role).granted == 1
        assert calls.admit("crm", HOST, BreakerRole.VERIFY).granted == 0

    def test_jitter_moves_the_first_trial_by_at_most_what_is_allowed(self, store: BreakerStore) -> None:
        """P4: here chance has it that all of it is waited."""
        calls = registry(store, fail_max=1, jitter_ms=150)
        fail(calls)
        assert calls.retry_at("crm", HOST) == NOON + timedelta(seconds=60, milliseconds=150)

    def test_a_policy_s_change_keeps_the_state(self, calls: BreakerRegistry) -> None:
        """P5."""
        calls.allow(HOST, "crm")
        assert calls.admit("crm", HOST).granted == 0
        calls.update_host_policy(HOST, trial_calls=2)
        calls.update_policy(CRM, trial_calls=2)
        assert calls.current_state(HOST, "crm") is BreakerState.HALF_OPEN
        assert calls.admit("crm", HOST, most=5).granted == 1


class TestLateResult:
    """A result from before the last transition is ignored, and frees nothing twice."""

    def test_a_success_from_before_the_opening_does_not_close_it(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        """P3."""
        calls = registry(store, fail_max=1)
        early = calls.allow(HOST, "crm")
        fail(calls)
        now.advance(seconds(60))
        calls.allow(HOST, "crm")
        before = store.load_all()
        calls.on_success(early)
        calls.on_failure(early, status=503, retry_after_s=300)
        assert before == store.load_all()

    def test_a_lost_trial_that_comes_back_frees_nobody_s_slot(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        calls = registry(store, fail_max=1, stuck_timeout_s=100, success_threshold=9)
        fail(calls)
        now.advance(seconds(60))
        lost = calls.allow(HOST, "crm")
        now.advance(seconds(101))
        calls.allow(HOST, "crm")
        calls.on_neutral(lost)
        assert calls.admit("crm", HOST).granted == 0

    def test_a_last_look_denies_what_was_admitted_before_the_opening(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        calls = registry(store, fail_max=1)
        early = calls.admit("crm", HOST, most=5)
        assert calls.recheck(early).blocked_until is None
        calls.settle(early, [FAILURE])
        assert calls.recheck(early).blocked_until == NOON + seconds(60)
        now.advance(seconds(60))
        trial = calls.admit("crm", HOST)
        assert calls.recheck(trial).blocked_until is None
        assert calls.recheck(early).blocked_until is not None


class TestCooldown:
    """P3."""

    @pytest.mark.parametrize("status", [429, 503])
    def test_retry_after_is_kept_to(self, store: BreakerStore, now: ManualClock, status: int) -> None:
        calls = registry(store)
        calls.settle(calls.admit("crm", HOST), [overloaded(120, status)])
        assert (COOLDOWN, seconds(120)) == ((error := denied(calls)).reason, error.remaining)
        assert calls.cooldown_remaining_ms(HOST, "crm") == 120_000
        now.advance(seconds(120))
        assert calls.allow(HOST, "crm").granted == 1
        assert calls.cooldown_remaining_ms(HOST, "crm") is None

    def test_retry_after_may_be_a_date(self, store: BreakerStore) -> None:
        calls = registry(store)
        wait = retry_after("Mon, 02 Mar 2026 12:02:00 GMT")
        calls.settle(calls.admit("crm"), [Outcome(OutcomeKind.FAILURE, 429, wait)])
        assert calls.retry_at("crm") == NOON + seconds(120)

    def test_up_to_a_cap(self, store: BreakerStore) -> None:
        calls = registry(store)
        calls.settle(calls.admit("crm"), [overloaded(86_400)])
        assert calls.retry_at("crm") == NOON + seconds(900)

    def test_other_statuses_set_none(self, store: BreakerStore) -> None:
        calls = registry(store)
        calls.settle(calls.admit("crm"), [overloaded(120, 500)])
        assert calls.retry_at("crm") is None

    def test_a_success_from_before_does_not_clear_it(self, store: BreakerStore) -> None:
        calls = registry(store)
        early = calls.allow(None, "crm")
        calls.settle(calls.admit("crm"), [overloaded(120)])
        calls.on_success(early)
        assert denied(calls, None).reason == COOLDOWN

    def test_it_is_reported_once_as_a_hold(self, store: BreakerStore) -> None:
        """No state change, so that calls in progress still count."""
        heard = Heard()
        calls = registry(store, heard)
        calls.settle(calls.admit("crm", most=3), [overloaded(120), overloaded(5), FAILURE])
        (hold,) = heard.transitions
        assert (hold.reason, hold.old, hold.new) == ("retry_after", BreakerState.CLOSED, BreakerState.CLOSED)
        assert hold.retry_at == NOON + seconds(120)
        assert store.load([CRM])[CRM].failure_count == 3

    def test_a_shorter_one_does_not_end_a_longer_one(self, store: BreakerStore) -> None:
        calls = registry(store)
        both = calls.admit("crm", most=2)
        calls.settle(both, [overloaded(120), overloaded(5)])
        assert calls.retry_at("crm") == NOON + seconds(120)


class TestPin:
    """B4 and B5 through the registry."""

    def test_to_open_holds_for_its_whole_time_and_ends_in_a_trial(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        calls = registry(store)
        calls.force_open(CRM, seconds=3_600, actor="officer:1")
        now.advance(seconds(3_599))
        assert (PINNED, seconds(1)) == ((error := denied(calls)).reason, error.remaining)
        now.advance(seconds(1))
        admission = calls.admit("crm", HOST, most=10)
        assert (admission.granted, admission.trial) == (1, True)

    def test_to_closed_holds_whatever_comes_and_counts_nothing(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        calls = registry(store, fail_max=1)
        calls.force_close(CRM, seconds=60, actor="officer:1")
        permits = [calls.allow(None, "crm") for _ in range(3)]
        for permit in permits[:2]:
            calls.on_failure(permit, status=503, retry_after_s=600)
        assert calls.allow(None, "crm").granted == 1
        now.advance(seconds(60))
        calls.on_failure(permits[2], status=500)  # the call was made under the pin
        assert calls.current_state(resolver="crm") is BreakerState.CLOSED
        calls.on_failure(calls.allow(None, "crm"), status=500)
        assert calls.current_state(resolver="crm") is BreakerState.OPEN

    def test_unpinned_it_keeps_its_state_and_the_next_call_is_a_trial(self, store: BreakerStore) -> None:
        calls = registry(store)
        calls.force_open(CRM, seconds=3_600, actor="officer:1")
        made = calls.unpin(CRM, actor="officer:1")
        assert (made.old, made.new, made.reason) == (BreakerState.OPEN, BreakerState.OPEN, "unpinned")
        assert calls.admit("crm").trial
        with pytest.raises(Conflict):
            calls.unpin(CRM, actor="officer:1")


class TestLooking:
    def test_blocked_ones_are_named_with_their_time_in_one_look(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1)
        calls.on_failure(calls.allow(None, "crm"), status=500)
        calls.on_failure(calls.allow("shared.example", None), status=500)
        pairs = [("crm", HOST), ("mail", "shared.example"), ("files", "shared.example"), ("archive", None)]
        until = NOON + seconds(60)
        assert calls.blocked(pairs) == {"crm": until, "mail": until, "files": until}
        assert calls.blocked([]) == {}

    def test_those_whose_trials_are_all_under_way_are_named_for_their_role(
        self, store: BreakerStore, now: ManualClock
    ) -> None:
        calls = registry(store, fail_max=1)
        fail(calls)
        now.advance(seconds(60))
        calls.allow(HOST, "crm")
        assert calls.blocked([("crm", HOST)]) == {}
        assert calls.blocked([("crm", HOST)], BreakerRole.RECTIFY) == {}
        assert list(calls.blocked([("crm", HOST)], BreakerRole.ERASE)) == ["crm"]

    def test_what_was_last_heard_is_told_without_asking(self, store: BreakerStore) -> None:
        calls = registry(store, fail_max=1)
        fail(calls)
        Repository(store).atomic_reset(CRM)
        Repository(store).atomic_reset(API)
        assert calls.last_known("crm", HOST).blocked_until == NOON + seconds(60)
        calls.retry_at("crm", HOST)
        assert calls.last_known("crm", HOST).blocked_until is None


class Recorder(BreakerListener):
    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def before_call(self, service_name: str, role: BreakerRole, calls: int) -> None:
        self.heard.append(("before_call", service_name))

    def success(self, service_name: str, role: BreakerRole) -> None:
        self.heard.append(("success", service_name))

    def failure(self, service_name: str, role: BreakerRole, outcome: Outcome) -> None:
        self.heard.append(("failure", service_name))

    def state_change(self, transition: Transition) -> None:
        self.heard.append(("state_change", transition.service_name))


class Grumpy(BreakerListener):
    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def before_call(self, *about: object) -> None:
        raise self.error

    failure = success = state_change = before_call  # type: ignore[assignment]


class TestListeners:
    """P4."""

    def test_hear_of_calls_outcomes_and_moves_in_their_order(self, store: BreakerStore) -> None:
        recorder = Recorder()
        policies = BreakerPolicies({"defaults": {"fail_max": 1}})
        calls = BreakerRegistry(store, policies, [recorder])
        calls.on_success(calls.allow(None, "crm"))
        calls.on_failure(calls.allow(None, "crm"), status=500)
        told = ["before_call", "success", "before_call", "failure", "state_change"]
        assert recorder.heard == [(each, CRM) for each in told]

    @pytest.mark.parametrize("error", [RuntimeError, CancelledError])
    def test_one_that_raises_changes_nothing(self, store: BreakerStore, error: type[BaseException]) -> None:
        recorder, policies = Recorder(), BreakerPolicies({"defaults": {"fail_max": 1}})

        def grumble(_: Transition) -> None:
            raise error

        calls = BreakerRegistry(store, policies, [Grumpy(error), recorder], grumble)
        permit: Permit = calls.allow(None, "crm")
        calls.on_failure(permit, status=500)
        assert calls.current_state(resolver="crm") is BreakerState.OPEN
        assert ("state_change", CRM) in recorder.heard
