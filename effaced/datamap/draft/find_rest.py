"""What no way leads to: tables that look personal all the same, and what to decide about them."""

from __future__ import annotations

from collections.abc import Iterator

from effaced.datamap.draft import words
from effaced.datamap.draft.concepts import BY_WORD
from effaced.datamap.draft.find_emails import differ_in_case, holds_email
from effaced.datamap.draft.find_owners import telling
from effaced.datamap.draft.find_pointers import SURE
from effaced.datamap.draft.find_roles import owner_pairs
from effaced.datamap.draft.known_names import KnownNames
from effaced.datamap.draft.look import json_tells, look_at
from effaced.datamap.draft.names import concept_of, is_one_of
from effaced.datamap.draft.samples import Samples, Share, mentions_email
from effaced.datamap.draft.sketch import Edge, Rule, Sketch
from effaced.datamap.draft.suspect import by_phone, has_shape, names_somebody, why_unclear
from effaced.datamap.schema import LiveColumn, LiveTable

_SOME = 3
_OF_OFFICES = {BY_WORD["street"].label, BY_WORD["phone"].label}
_IN_LISTS = {"email", "phone", "full_name", "first_name", "last_name", "login", "ip"}


def find_rest(
    sketch: Sketch, samples: Samples, names: KnownNames, declared: set[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The tables that no way leads to: what speaks against calling them not personal, or a remark."""
    undecided, not_personal = {}, {}
    hanging = _hanging(sketch, samples)
    for name, table in sketch.schema.tables.items():
        if name in declared:
            continue
        machinery = name.lower() in words.MACHINERY
        found = [] if machinery else looks_personal(sketch, samples, table)
        held = {} if machinery else names.held_by(table)
        pointing = sketch.mentions.get(name, [])
        doubtful = [edge for edge in pointing if edge.doubt]
        if found or held:
            undecided[name] = f"{_said(found, held)}; {_way_out(sketch, samples, table)}"
        elif (pair := next(owner_pairs(table), None)) and not samples.values(name, pair[0].name):
            undecided[name] = (
                f"{pair[0].name} and {pair[1].name} may point at people, but no row tells; link those that do"
                f" with where: {{{pair[0].name}: ...}}, or say that there are none"
            )
        elif doubtful:
            columns = ", ".join(f"{edge.columns[0]} ({edge.reason})" for edge in doubtful)
            undecided[name] = f"{columns} may point at people, but {doubtful[0].doubt}"
        elif name in hanging:
            edge = hanging[name]
            undecided[name] = (
                f"{edge.columns[0]} points at {edge.to}, where people's rows lead as well; if these are about"
                f" the same people, link it: {{to: {edge.to}, on: {{{edge.columns[0]}: {edge.on[0][1]}}}}}"
            )
        elif not machinery and (why := why_unclear(samples, table)):
            undecided[name] = why
        elif pointing:
            places = ", ".join(dict.fromkeys(f"{edge.columns[0]} at {edge.to}" for edge in pointing))
            not_personal[name] = f"points with {places}, whose row stays without a name"
        else:
            not_personal[name] = ""
    return undecided, not_personal


def _hanging(sketch: Sketch, samples: Samples) -> dict[str, Edge]:
    """Meters at the premises of a contract, and their readings: about whoever lives there, it may be."""
    found: dict[str, Edge] = {}
    plain = [edge for edge in sketch.pointers if len(edge.on) == 1 and not edge.doubt and not edge.where]
    plain = [edge for edge in plain if not is_one_of(edge.table, words.ORGANISATIONS)]
    for edge in plain:
        for source in sketch.sources.get(edge.to, ()):
            on = ((edge.columns[0], source.columns[0]),)
            share = samples.share(edge.table, source.table, on) if source.table != edge.table else None
            if share and share.of >= _SOME and share.part >= SURE:
                found.setdefault(edge.table, edge)
    while more := {edge.table: edge for edge in plain if edge.to in found and edge.table not in found}:
        found |= more
    return found


def nobodys_rules(
    sketch: Sketch, samples: Samples, names: KnownNames, table: LiveTable, changed: set[str]
) -> dict[str, Rule]:
    """Of a table whose rows only name people. `changed`: what is dealt with where they are named."""
    pointing = {own for edge in sketch.mentions.get(table.name, ()) for own in edge.columns}
    suspect = set(looks_personal(sketch, samples, table)) - changed - pointing
    if is_one_of(table.name, words.ORGANISATIONS):
        # Where an office is, and its telephone.
        suspect -= {name for name, label in telling(table).items() if label in _OF_OFFICES}
    doubt = (
        "it looks personal, but the rows are nobody's here; if it is about somebody, link the table to them,"
        " else it is not personal"
    )
    rules = dict.fromkeys(table.columns, Rule("not_personal", ""))
    for name in suspect:
        look = look_at(samples, table, table.columns[name], of_person=False)
        rules[name] = Rule("not_personal", look.reason if look.concept else "people in it", doubt)
    for name, whose in names.held_by(table).items():
        if name not in suspect | changed | pointing:
            rules[name] = Rule("not_personal", f"it holds names that are also in {whose}", doubt)
    return rules


def _said(found: list[str], held: dict[str, str]) -> str:
    parts = [f"{', '.join(found[:6])} look{'s' if len(found) == 1 else ''} personal"] if found else []
    more = {name: whose for name, whose in held.items() if name not in found}
    return ", ".join(
        [*parts, *(f"{name} holds names that are also in {whose}" for name, whose in more.items())]
    )


def looks_personal(sketch: Sketch, samples: Samples, table: LiveTable) -> list[str]:
    """By names, or by values of an unmistakable form."""
    seen = [
        column.name
        for column in table.columns.values()
        if _shows_people(column, table, samples.values(table.name, column.name))
        or names_somebody(sketch, table, column)
    ]
    return list(dict.fromkeys([*telling(table), *seen]))


def _shows_people(column: LiveColumn, table: LiveTable, values: list[object]) -> bool:
    match column.family:
        case "text":
            return has_shape(table, column, values) or mentions_email(values) or json_tells(values)
        case "json":
            return json_tells(values)
        case "array":
            concept = concept_of(column.name, "text", table.name)
            return (concept is not None and concept.word in _IN_LISTS) or mentions_email(values)
        case _:
            return False


def _way_out(sketch: Sketch, samples: Samples, table: LiveTable) -> str:
    """What to decide about a table that leads to nobody."""
    if is_one_of(table.name, words.ORGANISATIONS):
        return "not_personal if it is about organisations and nobody in them"
    mine = next((each for each in table.columns.values() if holds_email(samples, table, each)), None)
    ways = list(_by_address(sketch, samples, table, mine)) if mine else []
    if mine and ways:
        # Where most of the addresses are, else where the first people are.
        share, target, other = max(ways, key=lambda way: way[0].found if way[0] else 0)
        if target.determines([other.name]):
            as_text = ", as: text" if differ_in_case(mine, other) else ""
            link = f"{{to: {target.name}, on: {{{mine.name}: {other.name}}}{as_text}}}"
            if share is not None and not share.found:
                people = " or ".join(dict.fromkeys(way[1].name for way in ways))
                return (
                    f"no sampled {mine.name} is an address of {people}; not_personal if these are addresses"
                    f" of offices; if some are people's, link it: {link}"
                )
            return f"if {mine.name} can be the address of one of {target.name}, link it: {link}"
        return (
            f"{mine.name} may be the address of one of {target.name}, but no link can go by"
            f" {target.name}.{other.name} unless it is unique"
        )
    if said := by_phone(sketch, samples, table):
        return said
    if any(concept == "browser or device" for concept in telling(table).values()):
        return "not_personal if its rows are gone after some days anyway, else say whose they are"
    return "say whose rows they are, or that they are nobody's"


def _by_address(
    sketch: Sketch, samples: Samples, table: LiveTable, mine: LiveColumn
) -> Iterator[tuple[Share | None, LiveTable, LiveColumn]]:
    """The people's e-mail addresses, and how many of this table's are among them."""
    for person in sketch.people:
        target = sketch.schema.tables[person.table]
        for other in target.columns.values():
            if holds_email(samples, target, other):
                yield samples.share(table.name, target.name, ((mine.name, other.name),)), target, other
