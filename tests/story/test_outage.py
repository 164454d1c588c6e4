"""The drill as a visitor runs it: a vendor is down, its breaker opens, calls wait, nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from sqlalchemy import func, select
from waiting import PATIENCE, eventually

from effaced.breakers import transitions
from effaced.breakers.model import BreakerState, Transition
from effaced.core.db import Database
from effaced.deadletters.tables import DeadLetter
from effaced.model import AttemptOutcome, CallRole, OutboxStatus, RequestStatus
from effaced.outbox.tables import OutboxRow
from effaced.requests.tables import Request
from effaced.retries.tables import Attempt

OPEN, HALF_OPEN, CLOSED = BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED
SHORT = "defaults.reset_timeout_s=1.5, defaults.max_reset_timeout_s=3, resolvers.payment.fail_max=2"
ASKED = 4


def test_an_outage_opens_one_breaker_and_loses_nothing(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")}
    environ |= {"EFFACED_BREAKER_OVERRIDES": SHORT, "EFFACED_BACKOFF_SECONDS": "1"}
    said = tmp_path / "said"
    with said.open("wb") as output:
        words = ["up", "--demo", "--port", "0", "--data", str(tmp_path)]
        up = subprocess.Popen(
            [sys.executable, "-m", "effaced", *words],
            env=environ, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        eventually(lambda: "Ctrl-C" in said.read_text() or up.poll() is not None, "the demo to come up")
        assert up.poll() is None, said.read_text()
        told = drilled(tmp_path)
        assert f"{ASKED} requests: {ASKED} calls through, 0 waiting, 0 abandoned, 0 dead letters." in told
        assert "Zero lost." in told
        check(f"sqlite:///{tmp_path / 'demo' / 'effaced.db'}")
    finally:
        up.send_signal(signal.SIGINT)
        if up.wait(PATIENCE) != 0:
            os.killpg(up.pid, signal.SIGKILL)


def drilled(data: Path) -> str:
    """The drill, ended with Ctrl-C when a probe has failed; what it said."""
    words = ["outage", "payment", "--minutes", "5", "--requests", str(ASKED), "--data", str(data)]
    said = data / "drill"
    with said.open("wb") as output:
        drill = subprocess.Popen(
            [sys.executable, "-m", "effaced", "demo", *words], stdout=output, stderr=output
        )
    try:
        eventually(lambda: "trial failed" in said.read_text() or drill.poll() is not None, "a probe to fail")
        drill.send_signal(signal.SIGINT)
        assert drill.wait(PATIENCE) == 0, said.read_text()
    finally:
        if drill.poll() is None:
            drill.kill()
            drill.wait()
    return said.read_text()


def check(url: str) -> None:
    """What the database says of it."""
    database = Database(url)
    with database.read() as session:
        moves = transitions.read(session)[::-1]
        newest = select(Request).order_by(Request.received_at.desc()).limit(ASKED)
        requests = session.scalars(newest).all()
        ids = [request.id for request in requests]
        entries = session.scalars(select(OutboxRow).where(OutboxRow.request_id.in_(ids))).all()
        counted = (
            select(Attempt.entry_id, func.count().label("number"))
            .where(Attempt.role != CallRole.VERIFY)
            .where(~Attempt.trial | (Attempt.outcome == AttemptOutcome.SUCCESS))
            .group_by(Attempt.entry_id)
        )
        used = {row.entry_id: row.number for row in session.execute(counted)}
        letters = session.scalar(select(func.count()).where(DeadLetter.request_id.in_(ids)))
    database.dispose()
    went_round(moves)
    assert {request.status for request in requests} == {RequestStatus.COMPLETED}
    assert {entry.status for entry in entries} == {OutboxStatus.SUCCEEDED}
    assert letters == 0
    assert {entry.entry_id: entry.attempts for entry in entries} == {
        entry.entry_id: used[entry.entry_id] for entry in entries
    }, "what served as a probe in vain, and what waited, has its attempt back"


def went_round(moves: list[Transition]) -> None:
    """Only the payment system's breaker has moved: open, tried in vain, tried again, closed."""
    payment = [(move.old, move.new) for move in moves if move.service_name == "resolver:payment"]
    assert payment[:3] == [(CLOSED, OPEN), (OPEN, HALF_OPEN), (HALF_OPEN, OPEN)]
    assert payment[-2:] == [(OPEN, HALF_OPEN), (HALF_OPEN, CLOSED)]
    assert {move.service_name for move in moves if move.scope == "resolver"} == {"resolver:payment"}
