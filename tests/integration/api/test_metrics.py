"""/metrics: read over HTTP as Prometheus does, and compared with what stands in the database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID
from wsgiref.simple_server import WSGIRequestHandler, make_server

import loopback
import pytest
from attempts_cast import Try, ended_entry, write
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import event

from effaced.api import metrics
from effaced.core import clock
from effaced.deadletters.tables import DeadLetter
from effaced.model import AttemptOutcome, DeadLetterDomain, DeadLetterStatus, OutboxStatus, new_id
from effaced.outbox.flow import pause
from effaced.outbox.tables import OutboxRow
from effaced.requests.tables import Request
from effaced.retries.metrics import RetryMetrics

from .conftest import Api

TOKEN = "a-token-for-prometheus"
HOUR = timedelta(hours=1)
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def measured(make_api: Callable[..., Api], migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setattr(metrics, "_FRESH_SECONDS", 0.0)
    return make_api(migrated_url, metrics_token=TOKEN)


@pytest.fixture
def url(measured: Api) -> Iterator[str]:
    with make_server("127.0.0.1", 0, measured.app, handler_class=_Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/metrics"
        server.shutdown()
        thread.join()


def scrape(url: str) -> Samples:
    answer = loopback.get(url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/plain")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def test_entries_are_counted_by_resolver_and_status(measured: Api, url: str) -> None:
    now = clock.now()
    for status in (OutboxStatus.FAILED, OutboxStatus.FAILED, OutboxStatus.SUCCEEDED):
        ended_entry(measured.runtime.db, now, status)
    samples = scrape(url)
    assert value(samples, "effaced_entries", resolver="crm", status="failed") == 2
    assert value(samples, "effaced_entries", resolver="crm", status="pending") == 0
    assert ("effaced_entries", (("resolver", "crm"), ("status", "succeeded"))) not in samples


def test_tries_are_counted_by_outcome_with_their_latencies(measured: Api, url: str) -> None:
    now = clock.now()
    write(
        measured.runtime.db,
        [
            Try(now, latency_ms=20, delay_before_ms=40),
            Try(now - 2 * HOUR, latency_ms=70_000, outcome=AttemptOutcome.TIMEOUT, first=False, number=2),
        ],
    )
    RetryMetrics(measured.runtime.db).aggregate_hourly()
    write(measured.runtime.db, [Try(clock.now(), latency_ms=5, first=False)])
    samples = scrape(url)
    assert value(samples, "effaced_attempts_total", resolver="crm", outcome="success") == 2
    assert value(samples, "effaced_attempts_total", resolver="crm", outcome="timeout") == 1
    assert value(samples, "effaced_attempts_total", resolver="crm", outcome="failure") == 0
    assert value(samples, "effaced_retries_total", resolver="crm") == 2
    latency = "effaced_call_latency_seconds"
    assert value(samples, f"{latency}_bucket", resolver="crm", le="0.005") == 1
    assert value(samples, f"{latency}_bucket", resolver="crm", le="0.025") == 2
    assert value(samples, f"{latency}_bucket", resolver="crm", le="60.0") == 2
    assert value(samples, f"{latency}_bucket", resolver="crm", le="+Inf") == 3
    assert value(samples, f"{latency}_sum", resolver="crm") == pytest.approx(70.025)
    assert value(samples, "effaced_drain_latency_seconds_count", resolver="crm") == 1
    assert value(samples, "effaced_drain_latency_seconds_bucket", resolver="crm", le="0.05") == 1


def test_what_is_due_late_or_left_to_people_is_told(measured: Api, url: str) -> None:
    now, db = clock.now(), measured.runtime.db
    entry = ended_entry(db, now - HOUR, OutboxStatus.PENDING)
    taken = measured.post(measured.erasure()).get_json()
    with db.begin() as session:
        session.get_one(Request, UUID(taken["id"])).due_at = now - HOUR
        session.add(
            DeadLetter(
                id=new_id(), domain=DeadLetterDomain.VERIFICATION, failure_type="StillPresent",
                entry_id=entry,
                status=DeadLetterStatus.PENDING, context={}, created_at=now, updated_at=now,
            )
        )  # fmt: skip
        pause(session, "crm", actor="cli")
    samples = scrape(url)
    assert value(samples, "effaced_oldest_due_entry_seconds", resolver="crm") == pytest.approx(3_600, abs=60)
    assert value(samples, "effaced_dead_letters_open", domain="verification") == 1
    assert value(samples, "effaced_dead_letters_open", domain="message") == 0
    assert value(samples, "effaced_requests_overdue") == 1
    assert value(samples, "effaced_resolver_paused", resolver="crm") == 1
    assert value(samples, "effaced_resolver_paused", resolver="*") == 0


def test_the_state_of_every_breaker_is_told_and_a_pin_counts(measured: Api, url: str) -> None:
    measured.runtime.breakers.force_open("host:gone.example", actor="cli", seconds=60)
    samples = scrape(url)
    assert [
        value(samples, "effaced_breaker_state", breaker=breaker, state=state)
        for breaker in ("resolver:crm", "host:gone.example")
        for state in ("closed", "half_open", "open")
    ] == [1, 0, 0, 0, 0, 1]


def test_a_retry_after_hold_is_an_open_breaker_with_its_cooldown(measured: Api, url: str) -> None:
    calls = measured.runtime.breakers
    calls.on_failure(calls.allow(None, "crm"), status=429, retry_after_s=600)
    samples = scrape(url)
    assert value(samples, "effaced_breaker_state", breaker="resolver:crm", state="open") == 1
    assert value(samples, "effaced_breaker_state", breaker="resolver:crm", state="closed") == 0
    left = value(samples, "effaced_breaker_cooldown_seconds", breaker="resolver:crm")
    assert left == pytest.approx(600, abs=60)
    opens = value(samples, "effaced_breaker_opens_last_day", breaker="resolver:crm", reason="retry_after")
    assert opens == 1
    assert value(samples, "effaced_breaker_store_away") == 0


def test_an_entry_whose_lease_or_gate_is_over_is_due_since_then(measured: Api, url: str) -> None:
    now, db = clock.now(), measured.runtime.db
    entry = ended_entry(db, now - 5 * HOUR, OutboxStatus.FAILED)
    with db.begin() as session:
        session.get_one(OutboxRow, entry).gate = now - HOUR
    assert value(scrape(url), "effaced_oldest_due_entry_seconds", resolver="crm") == pytest.approx(
        3_600, abs=60
    )


def test_nothing_at_all_is_zero_and_not_absent(url: str) -> None:
    samples = scrape(url)
    assert value(samples, "effaced_oldest_due_entry_seconds", resolver="crm") == 0
    assert value(samples, "effaced_attempts_total", resolver="crm", outcome="success") == 0
    assert value(samples, "effaced_call_latency_seconds_count", resolver="crm") == 0


def test_counters_do_not_shrink_when_hours_are_no_longer_kept(measured: Api, url: str) -> None:
    with clock.pretend(clock.now() - timedelta(days=9)):
        write(measured.runtime.db, [Try(clock.now())])
        RetryMetrics(measured.runtime.db).aggregate_hourly()
    RetryMetrics(measured.runtime.db).aggregate_hourly()
    assert value(scrape(url), "effaced_attempts_total", resolver="crm", outcome="success") == 1


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}, {"X-Token": TOKEN}],
)
def test_without_the_token_nothing_is_told(measured: Api, headers: dict[str, str]) -> None:
    answer = measured.app.test_client().get("/metrics", headers=headers)
    assert measured.problem(answer)[0] == 401


def test_an_api_key_is_not_the_token(measured: Api) -> None:
    assert measured.get("/metrics").status_code == 401


def test_with_no_token_set_there_is_no_such_thing(api: Api) -> None:
    answer = api.app.test_client().get("/metrics", headers={"Authorization": "Bearer "})
    assert api.problem(answer)[0] == 404


def test_asked_often_the_database_is_asked_once(
    make_api: Callable[..., Api], migrated_sqlite_url: str
) -> None:
    api = make_api(migrated_sqlite_url, metrics_token=TOKEN)
    statements: list[str] = []
    engine = api.runtime.db.engine
    event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answers: list[Any] = [api.app.test_client().get("/metrics", headers=headers).data]
    asked = len(statements)
    answers += [api.app.test_client().get("/metrics", headers=headers).data for _ in range(5)]
    assert (len(statements), len(set(answers))) == (asked, 1)


def test_nobody_s_finished_calls_are_looked_at_one_by_one(
    make_api: Callable[..., Api], migrated_sqlite_url: str
) -> None:
    """Whatever is asked of the outbox goes by an index; SQLite says so without a million rows."""
    api = make_api(migrated_sqlite_url, metrics_token=TOKEN)
    ended_entry(api.runtime.db, clock.now(), OutboxStatus.PENDING)
    engine = api.runtime.db.engine
    asked: list[tuple[str, Any]] = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3])))
    api.app.test_client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    plans = []
    with engine.connect() as connection:
        for statement, values in [each for each in asked if "effaced_outbox" in each[0]]:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            plans += [row[3] for row in plan if "effaced_outbox" in row[3]]
    assert plans
    assert [each for each in plans if "INDEX" not in each] == []
