"""Somebody else writes to Redis. Nothing of it is run, called or believed, and the worker goes on."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from company_house import Company, Process, company
from receivers import receiver
from redis import Redis
from waiting import eventually

from effaced.core.servers import Valkey

JOB = "effaced:job:"
QUEUE = "effaced:queue:doorbell"
DRAIN = "drain-0123456789abcdef-0"
QUICK = {"lease_seconds": 11, "backoff_seconds": 0.2, "backoff_cap_seconds": 1}


class Pickled:
    """Unpickling it runs a command."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> Any:
        return os.system, (self._command,)


class Site:
    """A worker that waits for jobs, and a stranger's connection to its Redis."""

    def __init__(self, shop: Company, redis: Redis, worker: Process) -> None:
        self.shop, self.redis, self.worker = shop, redis, worker
        self.marker = shop.folder / "executed"

    def push(self, job_id: str = DRAIN, **fields: Any) -> None:
        if fields:
            self.redis.hset(JOB + job_id, mapping=fields)
        self.redis.rpush(QUEUE, job_id)

    def dropped(self) -> int:
        return self.shop.log("worker").count("job_dropped")

    def works(self) -> None:
        """The worker that was there from the beginning still carries out what is asked."""
        self.shop.start_web()
        assert self.shop.post(self.shop.people[0]).status_code == 201
        self.shop.eventually(lambda: self.shop.all_completed(1), "a request to be completed")
        assert self.worker.poll() is None
        assert not self.marker.exists()


@pytest.fixture
def site(migrated_sqlite_url: str, own_valkey: Valkey, tmp_path: Path) -> Iterator[Site]:
    with (
        company(migrated_sqlite_url, own_valkey.url, tmp_path, **QUICK) as shop,
        closing(Redis.from_url(own_valkey.url)) as redis,
    ):
        worker = shop.start("worker")
        shop.eventually(lambda: "worker_started" in shop.log("worker"), "the worker to have begun")
        yield Site(shop, redis, worker)


def rq_job(data: bytes, **more: Any) -> dict[str, Any]:
    """The hash of a job as RQ itself would read it."""
    return {
        "data": data,
        "origin": "doorbell",
        "status": "queued",
        "created_at": "2026-03-02T12:00:00Z",
        "timeout": "10",
        **more,
    }


def test_nothing_is_unpickled_and_no_named_function_is_run(site: Site) -> None:
    evil = pickle.dumps(Pickled(f"touch {site.marker}"))
    named = json.dumps(["os.system", None, [f"touch {site.marker}"], {}]).encode()
    for data in (evil, named):
        site.push(**rq_job(data, meta=evil, result=evil))
        site.push("evil", **rq_job(data))
        # As RQ alone would have it.
        site.redis.hset("rq:job:evil", mapping=rq_job(data))
        for queue in ("rq:queue:effaced", "rq:queue:doorbell"):
            site.redis.rpush(queue, "evil")
    site.push(**{"function": "os.system", "resolver": f"touch {site.marker}"})
    site.redis.set("rq:suspended", 1)
    site.works()
    assert site.dropped() == 5
    # Nobody commands a worker through Redis either.
    assert site.redis.pubsub_channels() == []
    assert site.redis.keys("rq:worker*") == []


def test_no_callback_or_webhook_of_a_job_is_honoured(site: Site) -> None:
    module = site.shop.folder / "stranger.py"
    module.write_text(f"open({str(site.marker)!r}, 'w').close()\n\ndef call(*_):\n    pass\n")
    site.shop.kill(site.worker)
    site.shop.environ["PYTHONPATH"], site.shop.afresh = str(site.shop.folder), True
    site.worker = site.shop.start("worker")
    with receiver() as heard:
        hooks = [{"url": heard.url, "job_status": status} for status in ("finished", "failed")]
        callbacks = {f"{when}_callback_name": "stranger.call" for when in ("success", "failure", "stopped")}
        job = rq_job(b"", webhooks=json.dumps(hooks), retries_left="5", repeats_left="5", **callbacks)
        site.push("drain-0123456789abcdef-0", **job, function="drain", resolver="crm")
        site.push("drain-0123456789abcdef-1", **job, function="no such function", resolver="crm")
        site.works()
        assert heard.posts == []


def test_malformed_jobs_are_dropped_with_a_line_each(site: Site) -> None:
    malformed: list[dict[str, Any]] = [
        {"function": "drain", "resolver": b"\xff\xfe"},
        {"function": "drain", "resolver": "x" * 5_000_000},
        {"function": "d" * 5_000_000, "resolver": "crm"},
        {"function": "drain", "resolver": "with a \x00 in it"},
        {"function": "drain", "resolver": ""},
        {"function": "deliver", "resolver": "crm"},
        {"function": "drain"},
    ]
    for number, fields in enumerate(malformed):
        site.push(f"drain-0123456789abcdef-{number}", **fields)
    ids = [b"\xff", b"", b"a" * 5_000_000, b"drain-0123456789abcdef-0:1", b"../../etc/passwd"]
    site.redis.rpush(QUEUE, *ids)
    site.redis.rpush(JOB + "deliver-1", "a list where a hash is expected")
    site.push("deliver-1")
    site.push("deliver-2")  # there is no such job, which is no fault
    eventually(lambda: site.redis.llen(QUEUE) == 0, "everything to be taken")
    site.works()
    assert site.dropped() == len(malformed) + len(ids) + 1
    assert "x" * 100 not in site.shop.log("worker")
