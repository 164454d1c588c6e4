"""What a stranger has left in Redis is read with limits, and repaired where it stands in the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.worker.bell import RqBell, connect
from effaced.worker.job import DoorbellJob, DoorbellQueue, MalformedJob

DRAIN = b"drain-0123456789abcdef-0"


@pytest.fixture
def queue(redis_url: str) -> Iterator[DoorbellQueue]:
    with closing(connect(redis_url)) as connection:
        yield DoorbellQueue(connection)


@pytest.fixture
def bell(redis_url: str) -> RqBell:
    return RqBell(Settings(redis_url=redis_url, keys=new_key()))  # type: ignore[arg-type]


@pytest.mark.parametrize("wait", [None, 1])
def test_a_queue_of_the_wrong_type_is_replaced(bell: RqBell, queue: DoorbellQueue, wait: int | None) -> None:
    queue.connection.set(queue.key, "a text where a list is expected")
    assert queue.pop(wait) is None
    bell.ring({"crm"})
    entry = queue.pop(wait)
    assert entry is not None
    assert DoorbellJob.take(entry, queue.connection, timeout=60).resolver == "crm"


def test_looking_at_the_queue_reads_a_thousand_short_ids_at_most(queue: DoorbellQueue) -> None:
    queue.connection.rpush(queue.key, b"z" * 20_000_000, *(f"junk-{number}" for number in range(5_000)))
    assert len(queue.waiting()) == 999


def test_a_sweep_rings_into_a_queue_full_of_garbage(bell: RqBell, queue: DoorbellQueue) -> None:
    queue.connection.rpush(queue.key, b"\xff\xfe", b"", "junk")
    bell.sweep({"crm"})
    bell.deliver()
    waiting = queue.waiting()
    assert waiting[3].startswith(b"sweep-")
    assert waiting[4].startswith(b"deliver-")


def test_a_job_longer_than_ours_is_removed_unread(queue: DoorbellQueue) -> None:
    key = DoorbellJob.key_for(DRAIN.decode())
    queue.connection.hset(key, mapping={"function": "drain", "resolver": "x" * 1_025})
    with pytest.raises(MalformedJob):
        DoorbellJob.take(DRAIN, queue.connection, timeout=60)
    assert not queue.connection.exists(key)


def test_a_resolver_may_be_called_anything_that_is_text(bell: RqBell, queue: DoorbellQueue) -> None:
    name = "Größe\u00a0\u200d 顧客 " * 10
    bell.ring({name})
    entry = queue.pop(None)
    assert entry is not None
    assert DoorbellJob.take(entry, queue.connection, timeout=60).resolver == name
