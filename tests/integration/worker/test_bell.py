"""The doorbell made of RQ: few jobs, and no ring lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from rq.exceptions import NoSuchJobError

from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.worker.bell import RqBell, connect
from effaced.worker.job import DoorbellJob, DoorbellQueue

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def queue(redis_url: str) -> Iterator[DoorbellQueue]:
    with closing(connect(redis_url)) as connection:
        yield DoorbellQueue(connection)


@pytest.fixture
def bell(redis_url: str) -> RqBell:
    return RqBell(Settings(redis_url=redis_url, keys=new_key()))  # type: ignore[arg-type]


def jobs(queue: DoorbellQueue) -> list[DoorbellJob]:
    return [DoorbellJob.take(each, queue.connection, timeout=60) for each in queue.waiting()]


def resolvers(queue: DoorbellQueue) -> list[str]:
    return [job.resolver for job in jobs(queue)]


def test_many_rings_are_two_jobs_one_to_run_and_one_to_wait(bell: RqBell, queue: DoorbellQueue) -> None:
    for _ in range(10):
        bell.ring({"crm"})
    assert resolvers(queue) == ["crm", "crm"]


def test_a_job_carries_the_name_of_the_resolver_and_nothing_else(bell: RqBell, queue: DoorbellQueue) -> None:
    bell.ring({"any name, even this one!"})
    (job,) = jobs(queue)
    assert queue.connection.hgetall(job.key) == {
        b"function": b"drain",
        b"resolver": b"any name, even this one!",
    }


def test_its_id_is_free_once_it_is_gone(bell: RqBell, queue: DoorbellQueue) -> None:
    bell.ring({"crm"})
    entry = queue.pop(None)
    assert entry is not None
    queue.forget(DoorbellJob.take(entry, queue.connection, timeout=60))
    bell.ring({"crm"})
    assert resolvers(queue) == ["crm"]


def test_the_id_of_a_job_whose_worker_died_is_free_again_by_itself(
    bell: RqBell, queue: DoorbellQueue
) -> None:
    bell.ring({"crm"})
    entry = queue.pop(None)
    assert entry is not None
    job = DoorbellJob.take(entry, queue.connection, timeout=90)
    assert 0 < queue.connection.ttl(job.key) <= 150


def test_a_job_that_nobody_takes_is_forgotten_by_redis(bell: RqBell, queue: DoorbellQueue) -> None:
    bell.ring({"crm"})
    (entry,) = queue.waiting()
    key = DoorbellJob.key_for(entry.decode())
    assert 0 < queue.connection.ttl(key) <= 3_600
    queue.connection.delete(key)
    with pytest.raises(NoSuchJobError):
        DoorbellJob.take(entry, queue.connection, timeout=60)


def test_sweeps_do_not_pile_up_before_a_busy_worker(bell: RqBell, queue: DoorbellQueue) -> None:
    with clock.pretend(NOON) as moving:
        for _ in range(50):
            bell.sweep({"slow", "quick"})
            moving.advance(timedelta(seconds=10))
    assert sorted(resolvers(queue)) == ["quick", "slow"]


def test_a_sweep_rings_although_a_crashed_drain_holds_its_ids(bell: RqBell, queue: DoorbellQueue) -> None:
    bell.ring({"crm"})
    bell.ring({"crm"})
    queue.connection.delete(queue.key)  # both jobs were taken by workers that died: their keys stay
    bell.ring({"crm"})
    assert resolvers(queue) == []
    bell.sweep({"crm"})
    assert resolvers(queue) == ["crm"]


def test_deliveries_do_not_pile_up_and_carry_nothing(bell: RqBell, queue: DoorbellQueue) -> None:
    with clock.pretend(NOON) as moving:
        for _ in range(5):
            bell.deliver()
            moving.advance(timedelta(seconds=10))
    (job,) = jobs(queue)
    assert (job.function, job.resolver) == ("deliver", "")


def test_a_delivery_is_rung_although_a_crashed_one_holds_its_id(bell: RqBell, queue: DoorbellQueue) -> None:
    with clock.pretend(NOON) as moving:
        bell.deliver()
        queue.connection.delete(queue.key)  # taken by a worker that died: its key stays
        moving.advance(timedelta(seconds=10))
        bell.deliver()
    assert len(queue.waiting()) == 1
