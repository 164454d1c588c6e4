"""Where everything stands in the picture of a data map: people at the left, their tables to the right.

Tables stand in columns by how many links they are away from the people. The same map always gives the same
picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from unicodedata import east_asian_width

from effaced.datamap.model.data_map import DataMap, Link, TableRule
from effaced.datamap.model.wording import (
    conditions,
    describe_columns,
    describe_people,
    describe_rows,
    group_by_treatment,
    pairs,
)
from effaced.datamap.show.picture_arrows import RAIL, Arrow, Stop, Way, draw_arrows, rails

WIDTH, GAP_X, GAP_Y, MARGIN = 312, 96, 18, 24
LINE, PAD, HEAD, LETTER = 16, 12, 44, 6.8
CHARACTERS = 42
"""How many characters of the small fixed-width letters fit into a box."""
WORD = 12
"""After how many characters names begin that stand beside their strategy's word."""
ONLY_COUNTS_FROM = 80
"""So many tables, and a box says how many columns share a fate instead of naming them."""
_SHAPE = 1.5
_LOWEST = 560
_NARROWEST = 800
_LOOP_ROOM = 8
_BESIDE = CHARACTERS - WORD - 1


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text, so many characters from the left end of its line; `kind` sets its style."""

    at: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Box:
    """One table."""

    rule: TableRule
    whose: str
    rows: str
    lines: tuple[tuple[Run, ...], ...]
    anchors: tuple[tuple[Link, str, int], ...]
    """Each link, its kind, and the line that tells of it."""
    column: int = 0
    x: float = 0
    y: float = 0

    @property
    def height(self) -> int:
        return HEAD + PAD + LINE * len(self.lines)


@dataclass(frozen=True, slots=True)
class Listed:
    """Tables that are only listed by name, under a heading."""

    heading: str
    lines: tuple[str, ...]
    y: float


@dataclass(frozen=True, slots=True)
class Layout:
    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    lists: tuple[Listed, ...]
    """At the bottom: the tables without personal data, and those that nobody has decided about."""


def lay_out(data_map: DataMap, *, top: float) -> Layout:
    """Place every table below `top`."""
    only_counts = len(data_map.tables) >= ONLY_COUNTS_FROM
    made = {name: _make_box(data_map, rule, only_counts) for name, rule in data_map.tables.items()}
    area = sum((box.height + GAP_Y) * (WIDTH + GAP_X) for box in made.values())
    tallest = max(_LOWEST, sqrt(area / _SHAPE), max((box.height for box in made.values()), default=0))
    placed: dict[str, Box] = {}
    number = 0
    for names in _layers(data_map):
        for column in _columns(
            [made[name] for name in _sorted_by_neighbours(names, placed, data_map)], tallest
        ):
            y = top
            for box in column:
                x = MARGIN + _LOOP_ROOM + number * (WIDTH + GAP_X)
                placed[box.rule.name] = replace(box, column=number, x=x, y=y)
                y += box.height + GAP_Y
            number += 1
    numbers = rails(_ways(placed))
    down = (max(numbers.values(), default=-1) + 1) * RAIL
    placed = {name: replace(box, y=box.y + down) for name, box in placed.items()}
    width = max(_NARROWEST, MARGIN + _LOOP_ROOM + number * (WIDTH + GAP_X) - GAP_X + MARGIN)
    bottom = max((box.y + box.height for box in placed.values()), default=top)
    lists = []
    for heading, tables in (
        ("Without personal data", sorted(data_map.not_personal)),
        ("To be decided", sorted(data_map.undecided)),
    ):
        if tables:
            lines = tuple(_wrap(tables, int((width - 2 * MARGIN) / LETTER)))
            lists.append(Listed(f"{heading} ({len(tables)})", lines, bottom + LINE + GAP_Y))
            bottom += LINE * (len(lines) + 1) + GAP_Y
    arrows = tuple(draw_arrows(_ways(placed), numbers, top=top + down))
    return Layout(width, bottom + MARGIN, tuple(placed.values()), arrows, tuple(lists))


def cut(text: str, most: int) -> str:
    """The text, shortened with an ellipsis if it is too long."""
    if _measure(text) <= most:
        return text
    while _measure(text) > most - 1:
        text = text[:-1]
    return f"{text}…"


def _measure(text: str) -> int:
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


def _make_box(data_map: DataMap, rule: TableRule, only_counts: bool) -> Box:
    lines: list[tuple[Run, ...]] = []
    anchors = []
    for link in rule.links:
        anchors.append((link, "from" if link.back else "to", len(lines)))
        lines += _link_lines(link, "from" if link.back else "to")
    for mention in rule.mentions:
        anchors.append((mention.link, "mentions", len(lines)))
        lines += _link_lines(mention.link, "mentions")
        lines.append((Run(2, "detail", cut(describe_columns(mention.columns), CHARACTERS - 2)),))
    for each in group_by_treatment(rule.columns):
        counted = f"{len(each.columns)} column{'' if len(each.columns) == 1 else 's'}"
        names = [counted] if only_counts else list(each.columns)
        if each.detail:
            lines.append(
                (Run(0, each.strategy, each.word), Run(WORD, "detail", cut(each.detail, _BESIDE + 3)))
            )
            lines += [(Run(2, "name", text),) for text in _wrap(names, CHARACTERS - 2)]
        else:
            first, *more = _wrap(names, _BESIDE)
            lines.append((Run(0, each.strategy, each.word), Run(WORD + 1, "name", first)))
            lines += [(Run(WORD + 1, "name", text),) for text in more]
    return Box(rule, describe_people(data_map, rule.name), describe_rows(rule), tuple(lines), tuple(anchors))


def _link_lines(link: Link, kind: str) -> Iterator[tuple[Run, ...]]:
    whole = f"{link.to}: {pairs(link)}"
    yield Run(0, "link", kind), Run(len(kind) + 1, "name", cut(whole, CHARACTERS - len(kind) - 1))
    if link.back:
        yield (Run(2, "detail", "unless somebody else's row points at it"),)
    for each in conditions(link):
        yield (Run(2, "detail", cut(f"where {each}", CHARACTERS)),)


def _wrap(names: Iterable[str], most: int) -> list[str]:
    """Names separated by commas, in lines of at most so many characters; at least one line."""
    lines: list[str] = []
    for name in names:
        name = cut(name, most)
        if lines and _measure(lines[-1]) + 2 + _measure(name) + 1 <= most:
            lines[-1] += f", {name}"
        else:
            lines += [name]
    return [f"{line}," for line in lines[:-1]] + lines[-1:]


def _layers(data_map: DataMap) -> list[list[str]]:
    """The tables by their distance from the people; last those that no link connects to anybody."""
    layers = [[each.table for each in data_map.people if each.table in data_map.tables]]
    seen = set(layers[0])
    while True:
        near = [
            name
            for name, rule in data_map.tables.items()
            if name not in seen and any(link.to in seen for link in _all_links(rule))
        ]
        if not near:
            break
        layers.append(near)
        seen.update(near)
    left = [name for name in data_map.tables if name not in seen]
    return [*layers, *([left] if left else [])]


def _all_links(rule: TableRule) -> list[Link]:
    return [*rule.links, *(mention.link for mention in rule.mentions)]


def _sorted_by_neighbours(names: Sequence[str], placed: dict[str, Box], data_map: DataMap) -> list[str]:
    """At the height of what they are linked to, so that fewer arrows cross."""

    def place(name: str) -> tuple[float, str]:
        ends = [placed[link.to] for link in _all_links(data_map.tables[name]) if link.to in placed]
        middle = sum(box.y for box in ends) / len(ends) if ends else 0
        return middle, name

    return sorted(names, key=place) if placed else list(names)


def _columns(boxes: list[Box], tallest: float) -> Iterator[list[Box]]:
    column: list[Box] = []
    height = 0.0
    for box in boxes:
        if column and height + box.height > tallest:
            yield column
            column, height = [], 0.0
        column.append(box)
        height += box.height + GAP_Y
    if column:
        yield column


def _ways(placed: dict[str, Box]) -> list[Way]:
    found = []
    for box in placed.values():
        for link, kind, number in box.anchors:
            if other := placed.get(link.to):
                start = _stop(box, HEAD + LINE * number + LINE / 2)
                end = _stop(other, HEAD / 2)
                found.append(Way(start, end, link, kind, f"{box.rule.name} {kind} {link.to}"))
    return found


def _stop(box: Box, down: float) -> Stop:
    return Stop(box.column, box.x, box.x + WIDTH, box.y + down)
