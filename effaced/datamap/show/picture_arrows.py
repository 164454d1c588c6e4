"""The arrows in the picture of a data map: straight to the next column, over rails at the top to others.

All that leads to one far table shares one rail, as on the map of an underground, so that three hundred tables
don't end in a tangle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from effaced.datamap.model.data_map import Link

RAIL = 6
_LOOP = 26
_FIRST = 16
_RAILS_IN_GAP = 12
"""How many rails stand beside each other between two columns before the first place is taken again."""
_MOST = 24

Line = tuple[str, bool]
"""Where a rail leads, and whether what runs on it are mentions."""


@dataclass(frozen=True, slots=True)
class Stop:
    """An end of an arrow: the column of the picture, its left and right edge, and a height."""

    column: int
    left: float
    right: float
    y: float


@dataclass(frozen=True, slots=True)
class Way:
    """A link of a table. `kind` is `to`, `from` (the other row points here) or `mentions`."""

    start: Stop
    end: Stop
    link: Link
    kind: str
    title: str

    @property
    def far(self) -> bool:
        return self.start.column > self.end.column + 1

    @property
    def line(self) -> Line:
        return self.link.to, self.kind == "mentions"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A link as it is drawn."""

    path: str
    kind: str
    title: str


def rails(ways: Iterable[Way]) -> dict[Line, int]:
    """The rail to each distant table, the most linked first. Rails that don't overlap share a height."""
    reach: dict[Line, list[int]] = {}
    for way in ways:
        if way.far:
            reach.setdefault(way.line, [way.end.column]).append(way.start.column)
    busiest = sorted(reach, key=lambda line: (-len(reach[line]), line))[:_MOST]
    taken: list[int] = []
    found = {}
    for line in sorted(busiest, key=lambda line: (reach[line][0], line)):
        first, last = reach[line][0], max(reach[line])
        number = next((each for each, end in enumerate(taken) if end < first), len(taken))
        taken[number:] = [last, *taken[number + 1 :]]
        found[line] = number
    return found


def draw_arrows(ways: Iterable[Way], numbers: dict[Line, int], *, top: float) -> Iterator[Arrow]:
    """`top` is where the tables begin; the rails run above it."""
    for way in ways:
        if way.far and way.line in numbers:
            path = _by_rail(way, numbers[way.line], top)
        elif way.far:  # too many rails already: the box says where it leads
            path = f"M{way.start.left:g} {way.start.y:g} h-{_FIRST}"
        elif way.start.column == way.end.column:
            path = _loop(way)
        else:
            path = _straight(way)
        yield Arrow(path, way.kind, way.title)


def _by_rail(way: Way, number: int, top: float) -> str:
    aside = _FIRST + RAIL * (number % _RAILS_IN_GAP)
    up, down = way.start.left - aside, way.end.right + aside
    rail = top - 10 - RAIL * number
    return (
        f"M{way.start.left:g} {way.start.y:g} H{up:g} V{rail:g} H{down:g} V{way.end.y:g} H{way.end.right:g}"
    )


def _loop(way: Way) -> str:
    """Within one column: out to the left and back."""
    (x, y), (x2, y2) = (way.start.left, way.start.y), (way.end.left, way.end.y)
    return f"M{x:g} {y:g} C{x - _LOOP:g} {y:g} {x2 - _LOOP:g} {y2:g} {x2:g} {y2:g}"


def _straight(way: Way) -> str:
    rightwards = way.end.column > way.start.column
    x = way.start.right if rightwards else way.start.left
    x2 = way.end.left if rightwards else way.end.right
    middle = (x + x2) / 2
    return f"M{x:g} {way.start.y:g} C{middle:g} {way.start.y:g} {middle:g} {way.end.y:g} {x2:g} {way.end.y:g}"
