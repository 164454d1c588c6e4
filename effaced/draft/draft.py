"""`draft_map`: look at a database and write a first data map for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from effaced.core.errors import ConfigurationError
from effaced.datamap.schema.read import read_schema
from effaced.datamap.vocabulary.concepts import BY_WORD
from effaced.datamap.vocabulary.names import concept_in, pointer, split_name, system_of
from effaced.draft.elsewhere import find_elsewhere
from effaced.draft.find_by_value import find_by_value
from effaced.draft.find_copies import find_copies
from effaced.draft.find_emails import find_by_email
from effaced.draft.find_fates import can_forget, find_fates
from effaced.draft.find_guests import mark_guests
from effaced.draft.find_owners import find_owners
from effaced.draft.find_people import find_people
from effaced.draft.find_pointers import find_pointers
from effaced.draft.find_rest import Known, find_rest, nobodys_rules
from effaced.draft.find_roles import find_pairs, find_roles
from effaced.draft.find_strangers import find_strangers
from effaced.draft.guess_columns import Guesser
from effaced.draft.known_by import KnownBy
from effaced.draft.known_names import KnownNames
from effaced.draft.private import telling
from effaced.draft.samples import ROWS, Samples
from effaced.draft.sketch import Edge, Person, Rule, Sketch
from effaced.draft.surrogates import surrogate_for
from effaced.draft.write_draft import Page, write

_KNOWN_BY = {"email": "email", "phone": "phone", "login": "username"}


@dataclass(frozen=True, slots=True)
class Draft:
    """The map as text, and the figures for whoever asked for it."""

    text: str
    people: tuple[str, ...]
    tables: int
    linked: int
    not_personal: int
    reviews: int
    unread: tuple[str, ...] = ()
    """Tables of which no row could be read."""


def draft_map(
    connection: Connection,
    *,
    schemas: Sequence[str] = (),
    subjects: Sequence[str] = (),
    sample_rows: int = ROWS,
) -> Draft:
    """A first map of this database. Reads the schema and at most `sample_rows` rows of each table."""
    elsewhere = find_elsewhere(connection, schemas)
    more = f" There are tables in {', '.join(elsewhere)}: name them with --schema." if elsewhere else ""
    schema = read_schema(connection, schemas)
    if not schema.tables:
        raise ConfigurationError(f"The database has no tables to draft a map from.{more}")
    samples = Samples(connection, schema, sample_rows)
    pointers = find_pointers(schema, samples)
    pointers += find_pairs(schema, samples)
    pointers += find_copies(schema, samples, pointers)
    people, others = find_people(schema, samples, pointers, subjects)
    if not people:
        hint = f" Closest: {'; '.join(others)}." if others else ""
        raise ConfigurationError(
            f"No table looks like one with a row per person.{hint} Name it with --subject.{more}"
        )
    pointers += find_roles(schema, samples, people, pointers)
    pointers += find_by_value(schema, samples, pointers)
    sketch = Sketch(schema, people, others, pointers)
    find_owners(sketch, samples)
    by_email = list(find_by_email(schema, samples, people, sketch.links, pointers))
    if by_email:
        sketch = Sketch(schema, people, others, [*pointers, *by_email])
        find_owners(sketch, samples)
    find_strangers(sketch, samples)
    find_fates(sketch)
    page = _page(sketch, samples, tuple(schemas), elsewhere)
    return Draft(
        write(page),
        tuple(person.table for person in people),
        len(schema.tables),
        len(page.rules),
        len(page.not_personal),
        page.reviews,
        tuple(page.unread),
    )


def _page(sketch: Sketch, samples: Samples, schemas: tuple[str, ...], elsewhere: list[str]) -> Page:
    guesser = Guesser(sketch, samples)
    known = Known(KnownNames(sketch, samples), KnownBy(sketch, samples))
    mentions = {name: found for name in sketch.mentions if (found := _mentions(sketch, name))}
    order = [person.table for person in sketch.people]
    order += [name for name in [*sketch.links, *sketch.sources, *mentions] if name not in order]
    rules: dict[str, Mapping[str, Rule]] = {}
    for name in dict.fromkeys(order):
        if name in sketch.personal:
            rules[name] = mark_guests(sketch, samples, name, guesser.rules(name))
        else:
            changed = {column for _, cells in mentions[name] for column in cells}
            rules[name] = nobodys_rules(sketch, samples, known, sketch.schema.tables[name], changed)
    undecided, not_personal = find_rest(sketch, samples, known, set(rules))
    return Page(
        sketch,
        schemas,
        {person.table: _identifiers(sketch, person) for person in sketch.people},
        {person.table: _refs(sketch, person) for person in sketch.people},
        rules,
        mentions,
        undecided,
        not_personal,
        elsewhere,
        sorted(samples.unread),
    )


def _mentions(sketch: Sketch, name: str) -> list[tuple[Edge, Mapping[str, Rule]]]:
    """What changes in rows that only name somebody: the pointer if its target goes, and copies of names."""
    found: list[tuple[Edge, Mapping[str, Rule]]] = []
    table = sketch.schema.tables[name]
    for edge in sketch.mentions[name]:
        rules = {}
        if edge.to not in sketch.stays and can_forget(sketch, edge) and not edge.doubt:
            column = next(each for each in edge.columns if table.columns[each].nullable)
            rules[column] = Rule("{anonymise: null}", edge.reason)
        elif edge.by_email and name not in sketch.records and not edge.doubt:
            live = table.columns[edge.columns[0]]
            if yaml := surrogate_for(table, live, BY_WORD["email"]):
                rules[live.name] = Rule(yaml, edge.reason)
        for column in _copies(sketch, edge) if sketch.person(edge.to) and name not in sketch.records else ():
            live = table.columns[column]
            yaml = surrogate_for(table, live, concept_in(table, live))
            if yaml:
                rules[column] = Rule(yaml, "a copy")
        if rules:
            found.append((edge, rules))
    return found


def _copies(sketch: Sketch, edge: Edge) -> list[str]:
    """assignee_name beside assignee_id."""
    said = pointer(edge.columns[0])
    stem = said.stem if said else split_name(edge.columns[0])[:-1] if edge.by_email else ()
    if not stem:
        return []
    table = sketch.schema.tables[edge.table]
    return [
        column
        for column in telling(table)
        if column not in edge.columns and split_name(column)[: len(stem)] == stem
    ]


def _identifiers(sketch: Sketch, person: Person) -> dict[str, str]:
    found: dict[str, str] = {}
    table = sketch.schema.tables[person.table]
    for column in table.columns.values():
        concept = concept_in(table, column)
        kind = _KNOWN_BY.get(concept.word) if concept else None
        if kind and kind not in found and column.family in ("text", "number") and not column.generated:
            found[kind] = column.name
    return found


def _refs(sketch: Sketch, person: Person) -> dict[str, str]:
    bound = {name for key in sketch.schema.foreign_keys if key.table == person.table for name in key.columns}
    return {
        kind: column.name
        for column in sketch.schema.tables[person.table].columns.values()
        if (kind := system_of(column.name))
        and column.family in ("text", "number", "uuid")
        and column.name not in bound
    }
