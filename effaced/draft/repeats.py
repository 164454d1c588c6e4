"""Of tables with keys of the same name, the one that was there first."""

from __future__ import annotations

from effaced.datamap.schema.tables import LiveTable
from effaced.draft.samples import Samples


def repeated(
    samples: Samples, pairs: list[tuple[LiveTable, str]], sure: float
) -> list[tuple[LiveTable, str]]:
    """The one whose keys all the others repeat, if there is one: prescriptions, not the dispensed ones."""

    def within(one: tuple[LiveTable, str], other: tuple[LiveTable, str]) -> bool:
        share = samples.share(one[0].name, other[0].name, ((one[1], other[1]),))
        return share is not None and share.part >= sure

    return [
        pair
        for pair in pairs
        if all(within(each, pair) and not within(pair, each) for each in pairs if each is not pair)
    ]
