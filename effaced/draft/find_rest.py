"""What no way leads to: tables that look personal all the same, and what to decide about them."""

from __future__ import annotations

from dataclasses import dataclass

from effaced.datamap.schema.tables import LiveColumn, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.concepts import BY_WORD
from effaced.datamap.vocabulary.names import concept_of, is_one_of
from effaced.draft.find_pointers import SURE
from effaced.draft.find_roles import owner_pairs
from effaced.draft.known_by import KnownBy
from effaced.draft.known_names import KnownNames
from effaced.draft.look import json_tells, look_at
from effaced.draft.private import telling
from effaced.draft.samples import Samples, mentions_email
from effaced.draft.sketch import Edge, Rule, Sketch
from effaced.draft.suspect import has_shape, names_somebody, why_unclear

_SOME = 3
_OF_OFFICES = {BY_WORD["street"].label, BY_WORD["phone"].label}
_IN_LISTS = {"email", "phone", "full_name", "first_name", "last_name", "login", "ip"}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of people, to see it in tables that do not lead to them."""

    names: KnownNames
    by: KnownBy

    def held_by(self, table: LiveTable) -> dict[str, str]:
        """Columns that hold some of it, and what."""
        held = {each.mine.name: f"holds values of {each.place}" for each in reversed(self.by.meetings(table))}
        names = self.names.held_by(table)
        return held | {name: f"holds names that are also in {whose}" for name, whose in names.items()}


def find_rest(
    sketch: Sketch, samples: Samples, known: Known, declared: set[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The tables that no way leads to: what speaks against calling them not personal, or a remark."""
    undecided, not_personal = {}, {}
    hanging = _hanging(sketch, samples)
    for name, table in sketch.schema.tables.items():
        if name in declared:
            continue
        machinery = name.lower() in words.MACHINERY
        found = [] if machinery else looks_personal(sketch, samples, table)
        pointing = sketch.mentions.get(name, [])
        held = {} if machinery else known.held_by(table)
        doubtful = [edge for edge in pointing if edge.doubt]
        if found or held:
            undecided[name] = f"{_said(found, held)}; {_way_out(known.by, table)}"
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
    sketch: Sketch, samples: Samples, known: Known, table: LiveTable, changed: set[str]
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
    for name, what in known.held_by(table).items():
        if name not in suspect | changed | pointing:
            rules[name] = Rule("not_personal", f"it {what}", doubt)
    return rules


def _said(found: list[str], held: dict[str, str]) -> str:
    parts = [f"{', '.join(found[:6])} look{'s' if len(found) == 1 else ''} personal"] if found else []
    return ", ".join([*parts, *(f"{name} {what}" for name, what in held.items() if name not in found)])


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


def _way_out(known: KnownBy, table: LiveTable) -> str:
    """What to decide about a table that leads to nobody."""
    if is_one_of(table.name, words.ORGANISATIONS):
        return "not_personal if it is about organisations and nobody in them"
    if meetings := known.meetings(table):
        return meetings[0].offer()
    if addresses := known.addresses(table):
        first = addresses[0]
        if first.share is None:
            return first.offer()
        people = " or ".join(dict.fromkeys(each.place.table.name for each in addresses))
        link = f"link it: {first.link}" if first.place.is_unique else first.no_link
        return (
            f"no sampled {first.mine.name} is an address of {people}; not_personal if these are addresses of"
            f" offices; if some are people's, {link}"
        )
    if any(concept == "browser or device" for concept in telling(table).values()):
        return "not_personal if its rows are gone after some days anyway, else say whose they are"
    return "say whose rows they are, or that they are nobody's"
