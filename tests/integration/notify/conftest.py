"""Those who are told, on loopback, and a house that tells them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from notify_cast import Town, webhook
from receivers import Mailbox, Receiver, mailbox, receiver

from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.db import Database


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is called directly, whatever this machine's proxy is."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def now() -> Iterator[ManualClock]:
    """A clock that starts at the real time: receivers refuse signatures that are minutes old."""
    with clock.pretend(datetime.now(UTC)) as moving:
        yield moving


@pytest.fixture
def town(db: Database, tmp_path: Path) -> Town:
    return Town(db, tmp_path)


@pytest.fixture
def oncall() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def post() -> Iterator[Mailbox]:
    with mailbox() as box:
        yield box


@pytest.fixture
def told(town: Town, oncall: Receiver) -> Town:
    """A town with one target, the webhook `oncall`."""
    town.configure(webhook(oncall))
    return town
