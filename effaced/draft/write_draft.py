"""The draft as YAML that a person reads: one line per column, with the reason beside it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from effaced.draft.sketch import Edge, Rule, Sketch

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_WORDS_OF_YAML = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"}
_COMMENT_AT = 62
_WIDTH = 110

_UNDECIDED = (
    "Nothing leads from these to a person, yet they look personal. Link them under tables, make them subjects"
    " of their own, or move them to not_personal."
)


@dataclass(frozen=True, slots=True)
class Page:
    """All that is to be written."""

    sketch: Sketch
    schemas: tuple[str, ...]
    identifiers: Mapping[str, Mapping[str, str]]
    refs: Mapping[str, Mapping[str, str]]
    rules: Mapping[str, Mapping[str, Rule]]
    mentions: Mapping[str, list[tuple[Edge, Mapping[str, Rule]]]]
    undecided: Mapping[str, str]
    not_personal: Mapping[str, str]
    elsewhere: Sequence[str] = ()
    """Schemas with tables that were not looked at."""
    unread: Sequence[str] = ()
    """Tables of which no row could be read."""

    @property
    def reviews(self) -> int:
        """Decisions left; those that share an anchor are one."""
        found = {
            (table, rule.doubt if _is_shared(rule) else column)
            for table, rules in self.rules.items()
            for column, rule in rules.items()
            if rule.doubt
        }
        return len(found) + len(self.undecided)


def write(page: Page) -> str:
    lines = [*_head(page), *_people(page), "tables:"]
    for name in page.rules:
        lines += _table(page, name)
    if page.undecided:
        lines += ["", *_remark(_UNDECIDED), "review:"]
        for name, doubt in page.undecided.items():
            lines += [f"  {quoted(name)}: >-", *(f"    {line}" for line in wrap(doubt, _WIDTH - 4))]
    if page.not_personal:
        lines += ["", "not_personal:"]
        lines += [_commented(f"  - {quoted(name)}", why) for name, why in page.not_personal.items()]
    return "\n".join(lines) + "\n"


def quoted(name: str | int) -> str:
    text = str(name)
    plain = isinstance(name, int) or (_PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _head(page: Page) -> Iterator[str]:
    tables = len(page.sketch.schema.tables)
    yield from _remark(
        f"A first data map, guessed from {tables} tables by `effaced datamap draft`. Each line says why."
        " Where it says `review:`, you decide, and `effaced datamap check` refuses the map until you have:"
        " put your rule in its place. What the draft would do stands at the end of it. Read the rest as well:"
        " all of it is guessed."
    )
    if page.unread:
        yield from _remark(
            f"No row could be read of {', '.join(page.unread)}: only names and types speak there."
        )
    if page.elsewhere:
        yield from _remark(f"Not looked at: tables in {', '.join(page.elsewhere)}; name them with --schema.")
    yield "version: 1"
    if page.schemas:
        yield f"schemas: [{', '.join(quoted(name) for name in page.schemas)}]"


def _people(page: Page) -> Iterator[str]:
    people = page.sketch.people
    for person in people:
        yield from _remark(f"{person.table}: {person.reason}.")
    if page.sketch.others:
        yield from _remark(f"Looked at as well: {'; '.join(page.sketch.others)}.")
    if len(people) == 1:
        [person] = people
        yield f"subject: {{table: {quoted(person.table)}, key: {_key(person.key)}}}"
        for what, known in (("identifiers", page.identifiers), ("refs", page.refs)):
            if known.get(person.table):
                yield f"{what}:"
                yield from (f"  {kind}: {quoted(column)}" for kind, column in known[person.table].items())
        return
    yield "subjects:"
    for person in people:
        yield f"  {quoted(person.kind)}:"
        yield f"    table: {quoted(person.table)}"
        yield f"    key: {_key(person.key)}"
        for what, known in (("identifiers", page.identifiers), ("refs", page.refs)):
            if known.get(person.table):
                yield f"    {what}: {{{_pairs(known[person.table].items())}}}"


def _key(key: tuple[str, ...]) -> str:
    return quoted(key[0]) if len(key) == 1 else f"[{', '.join(quoted(name) for name in key)}]"


def _table(page: Page, name: str) -> Iterator[str]:
    sketch = page.sketch
    yield ""
    owned = name in sketch.personal
    if not owned:
        yield "  # Rows that are nobody's, and only name people."
    elif name in sketch.stays:
        yield from _remark(f"Rows stay: {sketch.stays[name]}.", "  ")
    else:
        yield "  # Rows go: nothing in sight has to keep them."
    yield f"  {quoted(name)}:"
    yield from _links(page, name)
    if page.mentions.get(name):
        yield "    mentions:"
        for edge, rules in page.mentions[name]:
            columns = ", ".join(f"{quoted(column)}: {rule.yaml}" for column, rule in rules.items())
            yield _commented(f"      - {_link(edge, 'to')[:-1]}, columns: {{{columns}}}}}", edge.reason)
    yield "    columns:"
    rules = page.rules[name]
    times = Counter(rule.doubt for rule in rules.values() if _is_shared(rule))
    anchors: dict[str, str] = {}
    for column, rule in rules.items():
        yield from _column(name, column, rule, anchors, shared=times[rule.doubt] > 1)


def _links(page: Page, name: str) -> Iterator[str]:
    if page.sketch.person(name):
        return
    ways = [(_link(edge, "to"), edge.reason) for edge in page.sketch.links.get(name, ())]
    ways += [(_link(edge, "from"), edge.reason) for edge in page.sketch.sources.get(name, ())]
    if len(ways) == 1:
        yield _commented(f"    link: {ways[0][0]}", ways[0][1])
    elif ways:
        yield "    link:"
        yield from (_commented(f"      - {link}", reason) for link, reason in ways)


def _link(edge: Edge, way: str) -> str:
    """`on` is always this table's column first; for `from` the edge is the other table's pointer."""
    other, pairs = (edge.to, edge.on) if way == "to" else (edge.table, tuple((b, a) for a, b in edge.on))
    parts = [f"{way}: {quoted(other)}", f"on: {{{_pairs(pairs)}}}"]
    if edge.where:
        parts.append(f"where: {{{_pairs(edge.where.items())}}}")
    if edge.as_text:
        parts.append("as: text")
    return f"{{{', '.join(parts)}}}"


def _pairs(pairs: Iterable[tuple[str, str | int]]) -> str:
    return ", ".join(f"{quoted(one)}: {quoted(other)}" for one, other in pairs)


def _column(table: str, column: str, rule: Rule, anchors: dict[str, str], *, shared: bool) -> Iterator[str]:
    name = f"      {quoted(column)}:"
    if not rule.doubt:
        yield _commented(f"{name} {rule.yaml}", rule.reason)
        return
    anchor = ""
    if shared:
        if rule.doubt in anchors:
            yield _commented(f"{name} *{anchors[rule.doubt]}", rule.reason)
            return
        more = f"_{len(anchors) + 1}" if anchors else ""
        anchors[rule.doubt] = "keep_" + re.sub(r"\W+", "_", table, flags=re.ASCII) + more
        anchor = f" &{anchors[rule.doubt]}"
    yield _commented(f"{name}{anchor}", rule.reason)
    yield from _review(rule.doubt, rule.yaml)


def _review(doubt: str, suggestion: str) -> Iterator[str]:
    """A folded text: nothing in it needs quotes."""
    yield "        review: >-"
    yield from (f"          {line}" for line in wrap(f"{doubt};", _WIDTH - 10, break_long_words=False))
    yield f"          suggestion: {suggestion}"


def _is_shared(rule: Rule) -> bool:
    """One decision for all columns of a record, the law that keeps it; one for all of a key, and one for
    all that looks personal in rows of nobody."""
    return rule.doubt.startswith(("no basis is known", "rows that stay may go by", "it looks personal, but"))


def _remark(text: str, indent: str = "") -> list[str]:
    return [f"{indent}# {line}" for line in wrap(text, _WIDTH - len(indent) - 2, break_on_hyphens=False)]


def _commented(line: str, why: str) -> str:
    return f"{line.ljust(_COMMENT_AT)}  # {why}" if why else line
