"""The execution of a request: the person's rows, the entries and the event in one transaction."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from effaced.bench.company import COMPANY_MAP, SYSTEMS, company
from effaced.bench.erase_floor import erase_raw
from effaced.bench.ground import Ground, Progress, prepare
from effaced.bench.relay import relayed
from effaced.bench.report import Report, quantiles, ratio
from effaced.core import clock
from effaced.core.db import Database
from effaced.core.errors import Unavailable
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure
from effaced.model import RequestKind
from effaced.requests.execute import Executor
from effaced.requests.intake import IntakeRequest, receive
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.registry import Registered, ResolverRegistry

_WARM_UP = 5


def bench_erase(*, people: int, url: str | None, progress: Progress) -> Report:
    """Erase `people` people of three tables and four systems, by turns with the floor."""
    with prepare(url, progress) as ground:
        progress(f"{people} people of three tables ask to be forgotten, and as many for the floor")
        with company(ground, 2 * (people + _WARM_UP) + 2):
            trips, (effaced, floor) = _measure(ground, _plan(ground), people, progress)
    value, least = round(people / sum(effaced), 1), round(people / sum(floor), 1)
    times, floor_times = quantiles(effaced), quantiles(floor)
    line = (
        f"erase: {value:,.0f} transactions/s (p50 {times['p50']:.2f} ms, p95 {times['p95']:.2f} ms,"
        f" {trips} round trips and a commit); raw SQL floor {least:,.0f} transactions/s"
        f" (p50 {floor_times['p50']:.2f} ms); ratio {ratio(value, least):.2f}"
    )
    more = {**times, "floor_p50": floor_times["p50"], "floor_p95": floor_times["p95"], "round_trips": trips}
    return Report("erase", people, value, "transactions/s", least, [line], more)


def _plan(ground: Ground) -> ErasurePlan:
    with tempfile.TemporaryDirectory() as folder, ground.database.read() as session:
        path = Path(folder, "map.yaml")
        path.write_text(COMPANY_MAP)
        return plan_erasure(session.connection(), load_map(path))


def _measure(
    ground: Ground, plan: ErasurePlan, people: int, progress: Progress
) -> tuple[int, tuple[list[float], list[float]]]:
    registry = ResolverRegistry(tuple(Registered(name, "person", NoopResolver()) for name in SYSTEMS))
    ids = _ask(ground, plan, 2 * (people + _WARM_UP) + 2)
    trips = _round_trips(ground, plan, registry, ids[:2])
    executor = Executor(ground.database, ground.keyring, plan, registry)
    ground.settle_down()
    progress(f"erasing {people} people on each side")
    times: tuple[list[float], list[float]] = ([], [])
    with ground.raw() as connection:
        for number, request_id in enumerate(ids[2:]):
            started = clock.monotonic()
            if number % 2:
                erase_raw(connection, request_id, person=number + 3, systems=SYSTEMS)
            elif not executor.execute_now(request_id):
                raise Unavailable("An execution has failed: the figure would mean nothing.")
            if number >= 2 * _WARM_UP:
                times[number % 2].append(clock.monotonic() - started)
    return trips, times


def _ask(ground: Ground, plan: ErasurePlan, people: int) -> list[UUID]:
    """A request of each person, to be executed at once."""
    asked = [IntakeRequest(RequestKind.ERASURE, str(n + 1), approvals=0) for n in range(people)]
    with ground.database.begin() as session:
        return [receive(session, ground.keyring, plan, each).request.id for each in asked]


def _round_trips(ground: Ground, plan: ErasurePlan, registry: ResolverRegistry, ids: Sequence[UUID]) -> int:
    """How often the second of two executions waits for the database before it commits."""
    with relayed(ground.url) as (url, relay):
        database = Database(url)
        executor = Executor(database, ground.keyring, plan, registry)
        for request_id in ids:
            relay.restart()
            executor.execute_now(request_id)
        trips = relay.before_commit()
        database.dispose()
    return len(trips)
