"""A process is killed after the receiver has the message and before that is written down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from notify_cast import Town, webhook
from receivers import receiver
from waiting import PATIENCE, eventually

from effaced.core import clock
from effaced.core.db import Database
from effaced.model import DeliveryStatus

DELIVER = """
import asyncio, sys
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.runtime import Runtime
settings = Settings(database_url=sys.argv[1], notify=sys.argv[2], keys=new_key())
asyncio.run(Runtime(settings).deliverer().run())
"""


def test_the_message_is_sent_again_under_the_same_id_once_the_lease_has_ended(
    migrated_url: str, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    town = Town(db, tmp_path)
    with receiver() as oncall:
        town.configure(webhook(oncall))
        town.tell()
        oncall.stall = True
        process = subprocess.Popen([sys.executable, "-c", DELIVER, migrated_url, str(town.path)])
        eventually(lambda: oncall.posts, "the receiver to have the message")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        oncall.stall = False
        assert (town.is_due(), town.deliver()) == (False, 0), "the lease holds"
        with clock.pretend(datetime.now(UTC) + timedelta(seconds=300)):
            assert town.deliver() == 1
        first, second = oncall.posts
        assert (first.id, first.body) == (second.id, second.body)
        assert (town.delivery().status, town.delivery().attempts) == (DeliveryStatus.DELIVERED, 2)
