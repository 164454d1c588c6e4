"""What it takes to claim a batch, in an empty table and among rows that nobody may claim."""

from __future__ import annotations

from collections.abc import Callable

from effaced.bench.fill import fill, fill_crowd
from effaced.bench.floor import claim_raw
from effaced.bench.ground import BATCH, RESOLVER, Ground, Progress, prepare
from effaced.bench.report import Report, quantiles, ratio
from effaced.core import clock
from effaced.outbox.claim import claim
from effaced.retries.policy import BackoffPolicy

_LEASE = BackoffPolicy().lease
Times = dict[str, list[float]]


def bench_claim(
    *, terminal: int, parked: int, claims: int, url: str | None, progress: Progress, batch: int = BATCH
) -> Report:
    """Claim batches by turns with the floor: first with nothing else there, then among the crowd."""
    with prepare(url, progress) as ground:
        empty = _measure(ground, batch, claims)
        ground.clear()
        progress(f"filling: {terminal:,} terminal and {parked:,} parked entries")
        with ground.raw() as connection:
            fill_crowd(connection, resolver=RESOLVER, terminal=terminal, parked=parked)
        crowded = _measure(ground, batch, claims)
    value, floor = quantiles(crowded["effaced"]), quantiles(crowded["floor"])
    alone, floor_alone = quantiles(empty["effaced"]), quantiles(empty["floor"])
    against_empty = ratio(value["p50"], alone["p50"])
    floor_against_empty = ratio(floor["p50"], floor_alone["p50"])
    crowd = f"{terminal:,} terminal and {parked:,} parked entries"
    lines = (
        f"claim: {value['p50']:.2f} ms for a batch of {batch} among {crowd} (p95 {value['p95']:.2f}); raw SQL"
        f" floor {floor['p50']:.2f} ms; ratio {ratio(value['p50'], floor['p50']):.2f}",
        f"claim: {alone['p50']:.2f} ms with nothing else there, the floor {floor_alone['p50']:.2f} ms;"
        f" the crowd makes it {against_empty:.2f} of that, the floor {floor_against_empty:.2f}",
    )
    more = {
        **value,
        "batch": batch,
        "terminal": terminal,
        "parked": parked,
        "empty": {"value": alone["p50"], "floor": floor_alone["p50"]},
        "against_empty": against_empty,
        "floor_against_empty": floor_against_empty,
    }
    return Report("claim", claims, value["p50"], "ms", floor["p50"], lines, more)


def _measure(ground: Ground, batch: int, claims: int) -> Times:
    ground.progress(f"claiming {claims} batches of {batch} on each side")
    times: Times = {"floor": [], "effaced": []}
    with ground.raw() as connection:
        sides: dict[str, Callable[[], int]] = {
            "floor": lambda: len(claim_raw(connection, resolver=RESOLVER, batch=batch)),
            "effaced": lambda: _claim(ground, batch),
        }
        # One more of each, not counted: what is prepared and compiled is so only once.
        fill(connection, ground.keyring, entries=2 * batch * (claims + 1), resolver=RESOLVER)
        ground.settle_down()
        for number in range(claims + 1):
            for side, take in sides.items():
                started = clock.monotonic()
                taken = take()
                if number:
                    times[side].append(clock.monotonic() - started)
                assert taken == batch
    return times


def _claim(ground: Ground, batch: int) -> int:
    with ground.database.begin() as session:
        return len(claim(session, RESOLVER, limit=batch, lease=_LEASE))
