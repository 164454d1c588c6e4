"""The doorbell made of RQ: few jobs, and no ring lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from rq import Queue

from effaced import clock
from effaced.config import Settings
from effaced.crypto import new_key
from effaced.worker.bell import QUEUE, RqBell, connect

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def queue(redis_url: str) -> Iterator[Queue]:
    with closing(connect(redis_url)) as connection:
        yield Queue(QUEUE, connection=connection)


@pytest.fixture
def bell(redis_url: str) -> RqBell:
    return RqBell(Settings(redis_url=redis_url, keys=new_key()))  # type: ignore[arg-type]


def resolvers(queue: Queue) -> list[str]:
    return [str(job.args[0]) for job in queue.get_jobs()]


def test_many_rings_are_two_jobs_one_to_run_and_one_to_wait(bell: RqBell, queue: Queue) -> None:
    for _ in range(10):
        bell.ring({"crm"})
    assert resolvers(queue) == ["crm", "crm"]


def test_a_job_carries_the_name_of_the_resolver_and_nothing_else(bell: RqBell, queue: Queue) -> None:
    bell.ring({"any name, even this one!"})
    (job,) = queue.get_jobs()
    assert (job.args, job.kwargs, job.meta) == (("any name, even this one!",), {}, {})


def test_its_id_is_free_once_it_is_gone(bell: RqBell, queue: Queue) -> None:
    bell.ring({"crm"})
    queue.empty()
    bell.ring({"crm"})
    assert resolvers(queue) == ["crm"]


def test_sweeps_do_not_pile_up_before_a_busy_worker(bell: RqBell, queue: Queue) -> None:
    with clock.pretend(NOON) as moving:
        for _ in range(50):
            bell.sweep({"slow", "quick"})
            moving.advance(timedelta(seconds=10))
    assert sorted(resolvers(queue)) == ["quick", "slow"]


def test_a_sweep_rings_although_a_crashed_drain_holds_its_ids(bell: RqBell, queue: Queue) -> None:
    bell.ring({"crm"})
    bell.ring({"crm"})
    queue.connection.delete(queue.key)  # both jobs were taken by workers that died: their keys stay
    bell.ring({"crm"})
    assert resolvers(queue) == []
    bell.sweep({"crm"})
    assert resolvers(queue) == ["crm"]


def test_deliveries_do_not_pile_up_and_carry_nothing(bell: RqBell, queue: Queue) -> None:
    with clock.pretend(NOON) as moving:
        for _ in range(5):
            bell.deliver()
            moving.advance(timedelta(seconds=10))
    (job,) = queue.get_jobs()
    assert (job.func_name, job.args, job.kwargs) == ("effaced.worker.jobs.deliver", (), {})


def test_a_delivery_is_rung_although_a_crashed_one_holds_its_id(bell: RqBell, queue: Queue) -> None:
    with clock.pretend(NOON) as moving:
        bell.deliver()
        queue.connection.delete(queue.key)  # taken by a worker that died: its key stays
        moving.advance(timedelta(seconds=10))
        bell.deliver()
    assert len(queue.get_job_ids()) == 1
