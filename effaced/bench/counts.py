"""What it takes to count all entries by status."""

from __future__ import annotations

from effaced.bench.fill import fill_crowd
from effaced.bench.floor import count_raw
from effaced.bench.ground import RESOLVER, Progress, prepare
from effaced.bench.report import Report, quantiles, ratio
from effaced.core import clock
from effaced.saga.facade import Outbox


def bench_counts(*, terminal: int, parked: int, times: int, url: str | None, progress: Progress) -> Report:
    """Count by turns with the floor, which is the GROUP BY alone."""
    taken: dict[str, list[float]] = {"floor": [], "effaced": []}
    with prepare(url, progress) as ground:
        progress(f"filling: {terminal:,} terminal and {parked:,} parked entries")
        with ground.raw() as connection:
            fill_crowd(connection, resolver=RESOLVER, terminal=terminal, parked=parked)
            ground.settle_down()
            outbox = Outbox(ground.database.sessions, keyring=ground.keyring)
            progress(f"counting {times} times on each side")
            for number in range(times + 1):  # the first is not counted: it fills the cache
                for side in taken:
                    started = clock.monotonic()
                    counted = sum(
                        (count_raw(connection) if side == "floor" else outbox.status_counts()).values()
                    )
                    if number:
                        taken[side].append(clock.monotonic() - started)
                    assert counted == terminal + parked
    value, floor = quantiles(taken["effaced"]), quantiles(taken["floor"])
    line = (
        f"counts: {value['p50']:.1f} ms for {terminal + parked:,} entries (p95 {value['p95']:.1f});"
        f" raw SQL floor {floor['p50']:.1f} ms; ratio {ratio(value['p50'], floor['p50']):.2f}"
    )
    more = {**value, "terminal": terminal, "parked": parked}
    return Report("counts", times, value["p50"], "ms", floor["p50"], [line], more)
