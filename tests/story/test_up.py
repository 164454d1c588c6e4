"""`make run` as a visitor sees it: everything starts, shows every state, and stops without a trace."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import loopback
from company_house import addresses_in, descendants
from sqlalchemy import select
from waiting import PATIENCE, eventually

from effaced.core.db import Database
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, OutboxStatus, RequestStatus
from effaced.outbox.tables import OutboxRow
from effaced.requests.tables import Request


def test_starts_the_demo_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")}
    said = tmp_path / "said"
    with said.open("wb") as output:
        up = subprocess.Popen(
            [sys.executable, "-m", "effaced", "up", "--demo", "--port", "0", "--data", str(tmp_path)],
            env=environ, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        eventually(lambda: "Ctrl-C" in said.read_text() or up.poll() is not None, "the demo to come up")
        text = said.read_text()
        assert up.poll() is None, text
        assert re.search(r"Sign in\s+officer@demo\.example\s+/\s+\S+", text)
        console = addresses_in(text)[0]
        assert loopback.get(f"{console}/readyz").status_code == 200
        assert states(f"sqlite:///{tmp_path / 'demo' / 'effaced.db'}") == {
            *{RequestStatus.REVIEW, RequestStatus.APPROVED, RequestStatus.RUNNING, RequestStatus.COMPLETED},
            *{OutboxStatus.SUCCEEDED, OutboxStatus.SCHEDULED, OutboxStatus.ABANDONED, OutboxStatus.FAILED},
            *(set(DeadLetterDomain) - {DeadLetterDomain.MESSAGE}),
        }
        family = descendants(up.pid)
        assert len(family) >= 5
        up.send_signal(signal.SIGINT)
        assert up.wait(PATIENCE) == 0
        assert [pid for pid in family if Path(f"/proc/{pid}").exists()] == []
    finally:
        if up.poll() is None:
            os.killpg(up.pid, signal.SIGKILL)


def states(url: str) -> set[str]:
    database = Database(url)
    with database.read() as session:
        found: set[str] = {
            *session.scalars(select(Request.status).distinct()),
            *session.scalars(select(OutboxRow.status).distinct()),
            *session.scalars(select(DeadLetter.domain).distinct()),
        }
    database.dispose()
    return found
