"""One system: how it stands, which policies are in force, and steering it."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from effaced.audit.tables import AuditEvent
from effaced.breakers.advice.tuner import change_policy
from effaced.breakers.layered.drift import DriftReconciler
from effaced.breakers.layered.outage_log import L2SyncFailureRecord, OutageLog
from effaced.breakers.model import BreakerState
from effaced.core import clock
from effaced.core.servers import Valkey
from effaced.model import AttemptOutcome, OutboxOperation, PolicyKind, PolicyScope, new_id
from effaced.outbox.flow import ALL, flow_state
from effaced.retries.overrides import Target, check_rate, get_override, set_override
from effaced.retries.tables import Attempt
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, NOON, Visitor, count_events

PAGE = "/console/resolvers/crm"
REASON = "They move house until the evening."


def read(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def open_by_failures(house: House, name: str = "resolver:crm") -> None:
    house.runtime.breakers.repository.record_failure_with_open_check(name, 1, 60)


def breaker(house: House, name: str = "resolver:crm") -> BreakerState:
    row = house.runtime.breakers.repository.get_or_create(name)
    return row.pinned or row.state


def on_a_host(house: House) -> None:
    known = house.runtime.registry._by_name
    for name in ("crm", "files"):
        known[name] = replace(known[name], host="api.example")


def policy(house: House) -> dict[str, object]:
    with house.runtime.db.read() as session:
        found = get_override(session, Target(PolicyKind.RETRY, PolicyScope.RESOLVER, "crm"))
    return dict(found.body) if found else {}


def add_tries(house: House, **outcomes: int) -> None:
    rows = [
        {
            "entry_id": new_id(), "request_id": new_id(), "number": 1, "resolver": "crm",
            "operation": OutboxOperation.ERASE, "at": NOON - timedelta(hours=2),
            "outcome": AttemptOutcome(word), "latency_ms": 80,
        }
        for word, count in outcomes.items()
        for _ in range(count)
    ]  # fmt: skip
    with house.runtime.db.begin() as session:
        session.execute(insert(Attempt), rows)


def test_an_open_breaker_counts_down_in_list_page_and_overview(house: House, ada: Visitor) -> None:
    open_by_failures(house)
    with clock.pretend(NOON + timedelta(seconds=15)):
        for path in (PAGE, "/console/resolvers?state=open"):
            told = read(ada.get(path).text)
            assert "Breaker open" in told
            assert "next trial call in 45 s." in told
        listed = re.findall(r'id="system-(\w+)"', ada.get("/console/resolvers?state=open").text)
        assert listed == ["crm"]
        overview = read(ada.get("/console/").text)
        assert re.search(r"1 Open breakers no calls go out there", overview)


def test_a_breaker_is_not_closed_since_it_first_opened_whatever_its_trials_came_to(
    house: House, ada: Visitor
) -> None:
    with clock.pretend(NOON - timedelta(hours=3)):
        open_by_failures(house)
    with clock.pretend(NOON - timedelta(minutes=5)):
        house.runtime.breakers.repository.try_acquire_half_open_slot("resolver:crm", 1, 300)
        open_by_failures(house)
    told = read(ada.get(PAGE).text)
    assert "2 Mar 2026, 11:55" in told
    assert "Not closed since 2 Mar 2026, 09:00 (3 hours ago)" in told


def test_rate_p95_last_success_and_the_open_time_are_drawn_from_the_last_day(
    house: House, ada: Visitor
) -> None:
    add_tries(house, success=3, failure=1)
    with clock.pretend(NOON - timedelta(minutes=30)):
        open_by_failures(house)
    page = ada.get(PAGE).text
    told = read(page)
    assert "Success rate, 24 h 75 %" in told
    assert "Last success 2 Mar 2026, 10:00 2 hours ago" in told
    assert page.count('class="band"') == 1
    assert "2 Mar 2026, 10:00 3 1 0 min" in told
    assert "2 Mar 2026, 11:00 0 0 30 min" in told


def test_a_poll_brings_nothing_until_a_breaker_moves(house: House, ada: Visitor) -> None:
    version = re.search(r'hx-get="(/console/resolvers\?seen=\w+)"', ada.get("/console/resolvers").text)
    assert version is not None
    assert ada.get(version[1], headers=HTMX).status_code == 204
    open_by_failures(house)
    answer = ada.get(version[1], headers=HTMX)
    assert answer.status_code == 200
    assert 'id="breaker-crm" hx-swap-oob="true"' in answer.text


def test_while_the_breakers_store_is_away_pages_show_what_was_last_known_and_say_so(
    house: House, ada: Visitor, own_valkey: Valkey
) -> None:
    chosen = {"breaker_store": "redis", "redis_url": own_valkey.url}
    house.runtime.settings = house.runtime.settings.model_copy(update=chosen)
    open_by_failures(house)
    away = "The breaker store does not answer."
    assert away not in html.unescape(ada.get(PAGE).text)
    own_valkey.stop()
    for path in ("/console/resolvers", PAGE):
        page = html.unescape(ada.get(path).text)
        assert away in page
        assert "Breaker open" in page
    assert re.search(r"1 Open breakers", read(ada.get("/console/").text))


@pytest.mark.parametrize(
    ("verb", "state", "event", "said"),
    [
        ("open", BreakerState.OPEN, "BREAKER_FORCED_OPEN", "Pinned open"),
        ("close", BreakerState.CLOSED, "BREAKER_FORCED_CLOSED", "Pinned closed"),
    ],
)
def test_a_breaker_is_held_with_a_reason_for_a_time(
    house: House, ada: Visitor, verb: str, state: BreakerState, event: str, said: str
) -> None:
    asked = read(ada.get(f"{PAGE}/steer/{verb}").text)
    assert "What happens" in asked
    answer = ada.post(f"{PAGE}/steer/{verb}", {"time": "90", "reason": REASON})
    assert (answer.status_code, answer.location) == (303, PAGE)
    assert breaker(house) is state
    told = read(ada.get(PAGE).text)
    assert said in told
    assert f"for another 1 h 30 min. Pinned {state} by Ada Okafor: “{REASON}”" in told
    assert count_events(house, event) == 1


def test_a_reset_closes_and_asks_for_no_time(house: House, ada: Visitor) -> None:
    open_by_failures(house)
    assert 'name="time"' not in ada.get(f"{PAGE}/steer/reset").text
    ada.post(f"{PAGE}/steer/reset", {"reason": REASON})
    assert breaker(house) is BreakerState.CLOSED
    assert "reset" in read(ada.get(PAGE).text)


def test_a_pause_from_the_page_needs_its_hours(house: House, ada: Visitor) -> None:
    assert ada.post(f"{PAGE}/steer/pause", {"reason": REASON, "time": ""}).status_code == 422
    ada.post(f"{PAGE}/steer/pause", {"reason": REASON, "time": "2"})
    with house.runtime.db.read() as session:
        assert flow_state(session, "crm").paused


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"time": "90", "reason": " "}, "The reason is missing."),
        ({"time": "soon", "reason": REASON}, "The minutes must be a number above 0 and at most 43200."),
        ({"time": "nan", "reason": REASON}, "The minutes must be a number above 0 and at most 43200."),
    ],
)
def test_what_is_refused_changes_nothing_and_keeps_what_was_typed(
    house: House, ada: Visitor, form: dict[str, str], said: str
) -> None:
    answer = ada.post(f"{PAGE}/steer/open", form, headers=HTMX)
    assert answer.status_code == 422
    assert said in answer.text
    assert f'value="{form["time"]}"' in answer.text
    assert form["reason"].strip() in answer.text
    assert breaker(house) is BreakerState.CLOSED
    assert count_events(house, "BREAKER_FORCED_OPEN") == 0


def test_what_is_paused_is_resumed_from_its_page(house: House, ada: Visitor) -> None:
    house.pause("crm", reason="Their maintenance.", hours=72)
    page = ada.get(PAGE).text
    assert f'href="{PAGE}/steer/resume"' in page
    assert "calls would go out." in read(page)
    asked = read(ada.get(f"{PAGE}/steer/resume").text)
    assert "“Their maintenance.” Since 2 Mar 2026, 12:00 (now), until" in asked
    assert ada.post(f"{PAGE}/steer/resume", {"reason": ""}).status_code == 422
    assert ada.post(f"{PAGE}/steer/resume", {"reason": "They are back."}).location == PAGE
    assert count_events(house, "RESOLVER_RESUMED") == 1


def test_a_pause_of_everything_is_said_on_every_systems_page(house: House, ada: Visitor) -> None:
    seen = re.search(r'hx-get="([^"]+seen=\w+)"', ada.get(PAGE).text)
    assert seen is not None
    assert ada.get(seen[1], headers=HTMX).status_code == 204
    house.pause(ALL, reason="The keys are in the wrong hands.", hours=None)
    polled = ada.get(seen[1], headers=HTMX)
    assert "Paused with everything." in polled.text
    assert "The keys are in the wrong hands." in polled.text


def test_a_hosts_breaker_is_steered_with_a_word_about_its_neighbours(house: House, ada: Visitor) -> None:
    on_a_host(house)
    asked = read(ada.get(f"{PAGE}/steer/open?breaker=host").text)
    assert "It also applies to files, on the same host." in asked
    ada.post(f"{PAGE}/steer/open?breaker=host", {"time": "90", "reason": REASON})
    assert breaker(house, "host:api.example") is BreakerState.OPEN
    assert breaker(house) is BreakerState.CLOSED
    listed = re.findall(r'id="system-(\w+)"', ada.get("/console/resolvers?state=open").text)
    assert listed == ["crm", "files"]


def test_the_policy_in_force_says_where_each_field_comes_from(house: House, ada: Visitor) -> None:
    ada.post(f"{PAGE}/policy", {"max_attempts": "3", "reason": REASON})
    told = read(ada.get(PAGE).text)
    assert "Attempts before it is abandoned 3 changed here" in told
    assert "Wait after the first attempt 30 s settings" in told
    assert "Backoff multiplier 2 default" in told
    assert "Opens after failures in a row 2 lowered to open before attempts are used up" in told


def test_a_breakers_field_that_was_changed_for_erasures_says_so(house: House, ada: Visitor) -> None:
    with house.runtime.db.begin() as session:
        changes = {"trial_calls": 2, "roles": {"erase": {"trial_calls": 3}, "verify": {"jitter_ms": 9}}}
        change_policy(
            session,
            house.runtime.breaker_policies_in_force(session),
            "resolver:crm",
            PolicyKind.BREAKER,
            changes,
            actor="cli",
        )
    told = read(ada.get(PAGE).text)
    assert "Trial calls at a time 3 changed here, for erasures" in told
    assert "Wait varies by up to 0 ms default" in told


def test_the_rate_in_force_says_where_it_comes_from(house: House, ada: Visitor) -> None:
    assert "Calls at most no limit default" in read(ada.get(PAGE).text)
    for target, rate, told in (
        (Target(PolicyKind.RATE), 7, "Calls at most 7 a second changed for all systems"),
        (
            Target(PolicyKind.RATE, PolicyScope.RESOLVER, "crm"),
            2.5,
            "Calls at most 2.5 a second changed here",
        ),
    ):
        with house.runtime.db.begin() as session:
            set_override(session, target, {"rate_per_second": rate}, check=check_rate, actor="cli")
        assert told in read(ada.get(PAGE).text)


def test_a_changed_policy_holds_is_an_event_and_can_be_undone(house: House, ada: Visitor) -> None:
    answer = ada.post(
        f"{PAGE}/policy", {"max_attempts": "3", "base_delay": "10", "jitter": "yes", "reason": REASON}
    )
    assert answer.status_code == 303
    assert policy(house) == {"max_attempts": 3, "base_delay": 10.0, "jitter": True}
    ada.post(f"{PAGE}/policy/undo", {"reason": "It did not help."})
    assert policy(house) == {}
    with house.runtime.db.read() as session:
        events = session.scalars(select(AuditEvent.type).where(AuditEvent.type.like("POLICY_%"))).all()
    assert events == ["POLICY_CHANGED", "POLICY_UNDONE"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"max_attempts": "many", "reason": REASON}, "must be a number"),
        ({"max_attempts": "99", "reason": REASON}, "less than or equal to 50"),
        ({"max_attempts": "3", "reason": ""}, "The reason is missing."),
    ],
)
def test_a_policy_that_is_refused_keeps_what_was_typed(
    house: House, ada: Visitor, form: dict[str, str], said: str
) -> None:
    answer = ada.post(f"{PAGE}/policy", form, headers=HTMX)
    assert answer.status_code == 422
    assert said in answer.text
    assert f'value="{form["max_attempts"]}"' in answer.text
    assert policy(house) == {}


def test_undoing_what_was_never_changed_is_said(house: House, ada: Visitor) -> None:
    ada.post(f"{PAGE}/policy/undo", {"reason": REASON})
    assert "Nothing was changed here that could be undone." in ada.get(PAGE).text
    assert count_events(house, "POLICY_UNDONE") == 0


def give_advice(house: House) -> None:
    for minute in range(6):
        with clock.pretend(NOON - timedelta(minutes=10 - minute)):
            open_by_failures(house)
            house.runtime.breakers.reset("resolver:crm", actor="cli")


def test_a_suggestion_is_applied_and_undone_with_a_reason(house: House, ada: Visitor, cleo: Visitor) -> None:
    give_advice(house)
    assert "so that fewer calls are lost." in ada.get(PAGE).text
    assert 'name="breaker"' not in cleo.get(PAGE).text
    ada.post(f"{PAGE}/advice", {"breaker": "resolver:crm", "reason": REASON})
    assert count_events(house, "POLICY_CHANGED") == 1
    assert "Opens after failures in a row 4 changed here" in read(ada.get(PAGE).text)
    ada.post(f"{PAGE}/advice/undo", {"breaker": "resolver:crm", "reason": REASON})
    assert count_events(house, "POLICY_UNDONE") == 1


@pytest.mark.parametrize("what", ["advice", "advice/undo"])
def test_advice_that_is_refused_keeps_what_was_typed(house: House, ada: Visitor, what: str) -> None:
    give_advice(house)
    if what == "advice/undo":
        ada.post(f"{PAGE}/advice", {"breaker": "resolver:crm", "reason": REASON})
    before = count_events(house, "POLICY_CHANGED")
    too_long = "x" * 2001
    answer = ada.post(f"{PAGE}/{what}", {"breaker": "resolver:crm", "reason": too_long}, headers=HTMX)
    assert answer.status_code == 422
    form = answer.text.split(f'action="{PAGE}/{what}"')[1].split("</form>")[0]
    assert 'role="alert"' in form
    assert f">{too_long}</textarea>" in form
    assert (count_events(house, "POLICY_CHANGED"), count_events(house, "POLICY_UNDONE")) == (before, 0)


def test_moves_are_paged_the_latest_first(house: House, ada: Visitor) -> None:
    for minute in range(13):
        with clock.pretend(NOON - timedelta(minutes=30 - minute)):
            open_by_failures(house)
            house.runtime.breakers.reset("resolver:crm", actor="cli")
    first = ada.get(PAGE).text
    assert first.count('data-label="Transition"') == 20
    following = re.search(r'hx-get="([^"]+after=[^"]+)"', first)
    assert following is not None
    assert ada.get(following[1], headers=HTMX).text.count('data-label="Transition"') == 6


def test_an_auditor_reads_the_page_and_finds_no_form(house: House, cleo: Visitor) -> None:
    open_by_failures(house)
    page = cleo.get(PAGE).text
    assert "Breaker open" in page
    assert "/steer/" not in page
    assert f'action="{PAGE}/policy' not in page
    assert "<form" not in cleo.get(f"{PAGE}/steer/open").text.split('<main id="main"')[1]


def test_a_system_that_nobody_knows_has_no_page(ada: Visitor) -> None:
    assert ada.get("/console/resolvers/cmr").status_code == 404
    assert ada.get(f"{PAGE}/steer/explode").status_code == 404


def test_a_pin_is_removed_and_the_breaker_keeps_its_state(house: House, ada: Visitor) -> None:
    house.runtime.breakers.force_open("resolver:crm", seconds=600, actor="cli")
    assert "steer/unpin" in ada.get(PAGE).text
    ada.post(f"{PAGE}/steer/unpin", {"reason": REASON})
    assert house.runtime.breakers.store.load(["resolver:crm"])["resolver:crm"].pinned is None
    assert breaker(house) is BreakerState.OPEN
    assert count_events(house, "BREAKER_UNPINNED") == 1
    assert "steer/unpin" not in ada.get(PAGE).text


def test_a_reset_says_that_the_host_still_blocks_and_can_include_it(house: House, ada: Visitor) -> None:
    on_a_host(house)
    for name in ("resolver:crm", "host:api.example"):
        open_by_failures(house, name)
    page = ada.get(f"{PAGE}/steer/reset").text
    assert "Reset the breaker of its host api.example too" in read(page)
    ada.post(f"{PAGE}/steer/reset", {"reason": REASON})
    told = read(ada.get(PAGE).text)
    assert "The breaker of its host api.example still blocks calls to crm." in told
    ada.post(f"{PAGE}/steer/reset", {"reason": REASON, "include_host": "yes"})
    assert breaker(house, "host:api.example") is BreakerState.CLOSED


def test_the_last_day_of_its_breakers_is_told_in_figures(house: House, ada: Visitor) -> None:
    on_a_host(house)
    open_by_failures(house, "host:api.example")
    with clock.pretend(NOON + timedelta(seconds=90)):
        told = read(ada.get(PAGE).text)
    figures = told.split("Its breakers in the last 24 hours")[1]
    assert re.search(r"Host api.example 1 too many consecutive failures 1 min 0 s", figures)
    assert re.search(r"crm 0 – 0 s", figures)


def test_what_an_outage_of_the_store_cost_is_told_for_its_own_breakers_only(
    house: House, ada: Visitor
) -> None:
    assert "While the breaker store was away" not in ada.get(PAGE).text
    log = OutageLog(house.runtime.db)
    for name in ("resolver:crm", "resolver:files"):
        log.add(L2SyncFailureRecord(name, "open", clock.now(), "ConnectionError", "closed"))
    log.add_drift(DriftReconciler().reconcile_and_record("resolver:crm", "open", "closed", clock.now(), None))
    told = read(ada.get(PAGE).text).split("While the breaker store was away")[1]
    assert "1 change did not reach the store" in told
    assert "1 still has not" in told
    assert re.search(r"resolver:crm closed to open not yet", told)
    assert re.search(r"resolver:crm open closed the process's state", html.unescape(told))
    assert "resolver:files" not in told


def test_a_pin_of_the_host_is_removed_without_a_reset(house: House, ada: Visitor) -> None:
    on_a_host(house)
    house.runtime.breakers.force_open("host:api.example", seconds=600, actor="cli")
    assert "steer/unpin?breaker=host" in ada.get(PAGE).text
    ada.post(f"{PAGE}/steer/unpin?breaker=host", {"reason": REASON})
    assert breaker(house, "host:api.example") is BreakerState.OPEN
    assert "steer/unpin" not in ada.get(PAGE).text
