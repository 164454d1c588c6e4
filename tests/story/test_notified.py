"""Somebody is told: through the workers, and without Redis through a drain."""

from __future__ import annotations

from pathlib import Path

import pytest
from company_house import company
from notify_cast import webhook
from receivers import Receiver, receiver
from waiting import PATIENCE


@pytest.fixture
def notify(tmp_path: Path) -> Path:
    return tmp_path / "notify.yaml"


def configure(path: Path, oncall: Receiver) -> None:
    path.write_text(f"version: 1\ntargets: {webhook(oncall)}\n")


def test_a_worker_delivers_what_the_scheduler_finds(
    migrated_url: str, redis_url: str, tmp_path: Path, notify: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with receiver() as oncall:
        configure(notify, oncall)
        with company(migrated_url, redis_url, tmp_path, notify=notify) as shop:
            shop.start_web()
            shop.start("worker")
            shop.start("scheduler")
            asked = shop.post(shop.people[0]).json()
            shop.eventually(lambda: oncall.posts, "the receiver to be told")
        told = oncall.posts[0].verified()
        assert (told["type"], told["data"]["request_id"]) == ("request.completed", asked["id"])
        assert told["data"]["ref"] == asked["ref"]


def test_without_redis_a_drain_delivers(
    migrated_sqlite_url: str, redis_url: str, tmp_path: Path, notify: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with receiver() as oncall:
        configure(notify, oncall)
        with company(migrated_sqlite_url, redis_url, tmp_path, notify=notify) as shop:
            del shop.environ["EFFACED_REDIS_URL"]
            shop.leave_approved(shop.people[0])
            assert shop.start("drain").wait(PATIENCE) == 0
            assert "Delivered 1 messages." in shop.log("drain")
        assert oncall.posts[0].verified()["type"] == "request.completed"
