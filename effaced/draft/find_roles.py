"""Pointers that name no table: roles (author_id, created_by), values, polymorphic pairs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from effaced.datamap.schema.tables import LiveColumn, LiveSchema, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import (
    Pointer,
    is_one_of,
    pointer,
    singular,
    split_and_expand,
    split_name,
    system_of,
    table_words,
)
from effaced.draft.find_people import key_of
from effaced.draft.find_pointers import SURE, comparable, judged
from effaced.draft.roles import by_values_alone
from effaced.draft.samples import Samples, form, is_random
from effaced.draft.sketch import Edge, Person

_ROLES = {*words.OWNING_ROLES, *words.RECEIVING_ROLES, *words.MENTIONING_ROLES, *words.MAKING_ROLES}


def find_roles(
    schema: LiveSchema, samples: Samples, people: list[Person], known: Iterable[Edge]
) -> list[Edge]:
    """What points at people without saying so in so many words."""
    bound = {(edge.table, name) for edge in known for name in edge.columns}
    found: list[Edge] = []
    for table in schema.tables.values():
        taken = {own.name for _, own, _ in owner_pairs(table)}
        for column in table.columns.values():
            if (table.name, column.name) not in bound and column.name not in taken:
                edge = _by_role(schema, samples, people, table, column)
                edge = edge or _by_value(schema, samples, people, table, column)
                edge = edge or _by_numbers(schema, samples, people, table, column)
                found += [edge] if edge else []
    return found


def _by_role(
    schema: LiveSchema, samples: Samples, people: list[Person], table: LiveTable, column: LiveColumn
) -> Edge | None:
    said = None if system_of(column.name) else pointer(column.name)
    if said is None and split_name(column.name) in (("uid",), ("userid",)):
        said = Pointer(("user",), "id")
    if said is None or (table.determines([column.name]) and table.name in {each.table for each in people}):
        return None
    own = key_of(table)
    if said.stem and said.stem[-1] in words.TREE_ROLES and len(own) == 1 and column.name not in own:
        if not comparable(column, table.columns[own[0]]):
            return None
        return judged(
            samples, table, column, table, table.columns[own[0]], "a row above it in the same table"
        )
    role = next((word for word in reversed(said.stem) if word in _ROLES), None)
    people_word = bool(said.stem) and is_one_of(said.stem[-1], [*words.PEOPLE, *words.STAFF])
    in_people = table.name in {each.table for each in people}
    if role is None and not people_word:
        return _by_ending(schema, samples, people, table, column)
    if role is None and in_people:
        return None
    wanted_staff = role in words.MENTIONING_ROLES
    edges = []
    for person in sorted(people, key=lambda each: each.staff is not wanted_staff):
        target = schema.tables[person.table]
        if len(person.key) != 1:
            continue
        other = target.columns[person.key[0]]
        # A text without an ending is more likely a name.
        text_id = role is not None and column.family == "text" and (said.ending or role == "whodunnit")
        if comparable(column, other) or text_id:
            spoken = said.stem[-1] if said.stem[-1] in column.name.lower() else column.name
            reason = f"'{role or spoken}' names a person"
            edges.append(judged(samples, table, column, target, other, reason, guessed=True))
    sure = [edge for edge in edges if edge and not edge.doubt]
    if len(sure) > 1 and not wanted_staff:
        # Numbers of customers are numbers of employees too.
        also = tuple(edge.to for edge in sure[1:])
        doubt = f"its values are keys of {' and of '.join(also)} as well; correct the link if it is them"
        return replace(sure[0], doubt=doubt, also=also)
    return next(iter(sure or [edge for edge in edges if edge]), None)


def _by_value(
    schema: LiveSchema, samples: Samples, people: list[Person], table: LiveTable, column: LiveColumn
) -> Edge | None:
    """Made-up ids do not meet by chance: where they are people's keys, they point at people."""
    values = [str(each) for each in samples.values(table.name, column.name)]
    if column.family not in ("uuid", "text") or not is_random(values) or column.name in key_of(table):
        return None
    for person in people:
        target = schema.tables[person.table]
        if len(person.key) == 1 and target.columns[person.key[0]].family in ("uuid", "text"):
            other = target.columns[person.key[0]]
            edge = judged(
                samples, table, column, target, other, f"holds values of {target.name}.{other.name}"
            )
            if edge:
                return edge
    return None


def _by_numbers(
    schema: LiveSchema, samples: Samples, people: list[Person], table: LiveTable, column: LiveColumn
) -> Edge | None:
    """kept_id, crm_ref: whatever it is called, all its values are keys of people and of nothing else."""
    called = pointer(column.name) or system_of(column.name)
    values = {str(each) for each in samples.values(table.name, column.name)}
    theirs = table.name in {each.table for each in people} or table.determines([column.name])
    if theirs or len(values) < 3 or column.family not in ("number", "text"):
        return None
    keys = [
        (target, target.columns[key[0]])
        for target in schema.tables.values()
        if target is not table and len(key := key_of(target)) == 1
    ]
    keys = [(target, key) for target, key in keys if key.family in ("number", "text")]
    for person in people:
        mine = [pair for pair in keys if pair[0].name == person.table]
        if not mine or not (called or _written_alike(samples, values, column, *mine[0])):
            continue
        if _all_there(samples, table, column, *mine[0]):
            if any(_all_there(samples, table, column, *pair) for pair in keys if pair not in mine):
                return None
            target, other = mine[0]
            reason = f"holds values of {target.name}.{other.name}"
            edge = judged(samples, table, column, target, other, reason)
            return replace(edge, doubt=by_values_alone(edge)) if edge else None
    return None


def _written_alike(
    samples: Samples, values: set[str], column: LiveColumn, target: LiveTable, key: LiveColumn
) -> bool:
    """Whether texts have the form of the people's keys: letters, digits and marks in the same places."""
    keys = samples.values(target.name, key.name)
    forms = {form(str(each)) for each in keys} if column.family == key.family == "text" else set()
    return {form(each) for each in values} <= forms and all(len(each) > 4 for each in values)


def _all_there(
    samples: Samples, table: LiveTable, column: LiveColumn, target: LiveTable, other: LiveColumn
) -> bool:
    share = samples.share(table.name, target.name, ((column.name, other.name),))
    return share is not None and share.found == share.of


def _by_ending(
    schema: LiveSchema, samples: Samples, people: list[Person], table: LiveTable, column: LiveColumn
) -> Edge | None:
    """A word like `followed`, or a key's own name at the end, and values that are all keys of people."""
    said = pointer(column.name)
    if said is None or not said.ending or not said.stem or said.ending in ("by", "to"):
        return None
    for person in people:
        target = schema.tables[person.table]
        if len(person.key) != 1 or not comparable(column, target.columns[person.key[0]]):
            continue
        like_key = split_name(person.key[0]) == (said.ending,) and said.ending != "id"
        if not like_key and not (said.ending == "id" and said.stem[-1].endswith(words.ROLE_ENDINGS)):
            continue
        reason = f"ends like {target.name}.{person.key[0]}" if like_key else "a word for a person"
        edge = judged(samples, table, column, target, target.columns[person.key[0]], reason)
        share = samples.share(table.name, target.name, ((column.name, person.key[0]),))
        if edge and not edge.doubt and share and (share.of >= 3 or like_key):
            return replace(edge, doubt="only the ending of the name and its values say so")
    return None


# --- owner_type and owner_id -------------------------------------------------------------------------


def find_pairs(schema: LiveSchema, samples: Samples) -> Iterator[Edge]:
    for table in schema.tables.values():
        for kind, own, django in owner_pairs(table):
            classes = _content_types(schema, samples) if django else None
            yield from _by_class(schema, samples, table, kind, own, classes)


def owner_pairs(table: LiveTable) -> Iterator[tuple[LiveColumn, LiveColumn, bool]]:
    """Columns for a class and an id of it, and whether the class is one of Django's numbers."""
    for kind in table.columns.values():
        parts = split_name(kind.name)
        django = parts[-3:] in (("content", "type", "id"), ("object", "type", "id"))
        names = {(*parts[:-3], "object", "id")} if django else set(_ids_of_class(parts))
        where = [
            each for each in table.columns.values() if split_name(each.name) in names and each is not kind
        ]
        if where:
            yield kind, where[0], django


def _ids_of_class(parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """How the id may be called that belongs to a class: owner_kind has owner_ref, table_name has row_id."""
    parts = parts[:-1] if parts[-2:] == ("table", "name") else parts
    if not parts or parts[-1] not in words.CLASSES:
        return
    stem = parts[:-1]
    if stem:
        yield from ((*stem, word) for word in words.IDS_OF_CLASSES)
    elif parts[0] not in words.VAGUE_CLASSES:
        yield from ((word, "id") for word in words.THINGS)
        yield from ((word,) for word in words.ROW_KEYS)


def _by_class(
    schema: LiveSchema,
    samples: Samples,
    table: LiveTable,
    kind: LiveColumn,
    own: LiveColumn,
    classes: dict[Any, str] | None,
) -> Iterator[Edge]:
    for value in sorted(set(samples.values(table.name, kind.name)), key=str):
        word = str(value) if classes is None else classes.get(value, "")
        target = _table_of_class(schema, word)
        if target is None or len(next(iter(target.uniques)).columns if target.uniques else ()) != 1:
            continue
        other = target.columns[next(iter(target.uniques[0].columns))]
        on, where = ((own.name, other.name),), {kind.name: value}
        share = samples.share(table.name, target.name, on, where=where)
        # Only a word that is the name of a table is ever written down.
        seen = f"'{value}' is {target.name}" if classes is None else f"content type {value} is {target.name}"
        doubt = "" if share and share.part >= SURE else "not every sampled value is found there"
        reason = f"{seen} in {kind.name}" + (f", {share}" if share else "")
        as_text = own.family != other.family
        yield Edge(table.name, target.name, on, reason, where=where, as_text=as_text, doubt=doubt)


def _content_types(schema: LiveSchema, samples: Samples) -> dict[Any, str]:
    """Django's list of classes: number -> `app.model`."""
    for table in schema.tables.values():
        if {"app_label", "model"} <= table.columns.keys():
            return {row.get("id"): f"{row['app_label']}.{row['model']}" for row in samples.rows(table.name)}
    return {}


def _table_of_class(schema: LiveSchema, word: str) -> LiveTable | None:
    """App\\Models\\User, auth.user and Customer all name a table."""
    last = re.split(r"[\\./:]+", word)[-1]
    wanted = tuple(singular(part) for part in split_and_expand(last))
    joined = "".join(wanted)
    for table in schema.tables.values():
        found = table_words(table.name)
        called = table.name.rpartition(".")[2].lower() == last.lower()
        if joined and (called or found == wanted or "".join(found) == joined):
            return table
    return None
