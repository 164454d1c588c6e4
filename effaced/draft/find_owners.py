"""Whose rows are whose: which pointers own, which only mention, what people's rows point at."""

from __future__ import annotations

from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import (
    head_word,
    is_one_of,
    split_name,
    table_words,
)
from effaced.draft.find_people import key_of
from effaced.draft.find_shared import Shared, find_shared
from effaced.draft.find_strangers import name_the_same
from effaced.draft.private import is_home, is_kept_by_one, is_private, telling, tells, words_of
from effaced.draft.roles import acts, does_something, is_staff, names_target, role
from effaced.draft.samples import Samples
from effaced.draft.sketch import Edge, Sketch, Way

# How many people have a row together, on average, that is still theirs.
_FEW = 2.5


def find_owners(sketch: Sketch, samples: Samples) -> None:
    """Fill in links, sources and mentions: from the people outwards, customers before staff."""
    known: dict[str, list[Edge]] = {name: [] for name in sketch.schema.tables}
    for edge in dict.fromkeys(sketch.pointers):
        known[edge.table].append(edge)
    every = [edge for found in known.values() for edge in found]
    shared = find_shared(sketch, known)
    for staff in (False, True):
        of_customers = set(sketch.links)
        reached = {person.table for person in sketch.people if person.staff is staff}
        while True:
            before = set(reached)
            for edge in every:
                if (
                    edge.to in reached
                    and _way(sketch, edge, known, shared, of_customers, samples) is Way.OWNS
                ):
                    _add(sketch.links, edge.table, edge)
                    reached.add(edge.table)
            if reached != before:
                continue
            # What people's rows point at comes after all that points at them.
            for edge in every:
                if (
                    edge.table in reached
                    and _is_source(sketch, edge, known, shared)
                    and not _is_common(sketch, edge, samples)
                ):
                    _add(sketch.sources, edge.to, edge)
                    reached.add(edge.to)
            if reached == before:
                break
    _trees(sketch, every, samples)
    taken = {edge for found in [*sketch.links.values(), *sketch.sources.values()] for edge in found}
    for edge in every:
        if edge.to in sketch.personal and edge not in taken and not _keeps_alive(sketch, edge):
            _add(sketch.mentions, edge.table, edge)


def _keeps_alive(sketch: Sketch, edge: Edge) -> bool:
    """What is only pointed at stays while a foreign key of nobody's row does: a shop's own address."""
    only_pointed_at = edge.to in sketch.sources and edge.to not in sketch.links
    return edge.foreign_key and only_pointed_at and edge.table not in sketch.personal


def _add(places: dict[str, list[Edge]], table: str, edge: Edge) -> None:
    if edge not in places.setdefault(table, []):
        places[table].append(edge)


def _way(
    sketch: Sketch,
    edge: Edge,
    known: dict[str, list[Edge]],
    shared: Shared,
    of_customers: set[str],
    samples: Samples,
) -> Way:
    """What the pointer means for the row that has it."""
    table = sketch.schema.tables[edge.table]
    if edge.only_names or edge.table == edge.to or sketch.person(edge.table) or edge.table in shared.tables:
        return Way.MENTIONS
    rivals = [each for each in known[edge.table] if each != edge]
    to_people = [each for each in rivals if each.to in shared.selves]
    owners = [each for each in to_people if role(each) in ("", "owning") and not acts(each)]
    if edge.to not in shared.selves or edge.table in shared.selves:
        if edge.to in shared.selves and set(edge.columns) != set(key_of(table)):
            return Way.MENTIONS  # a student's tutor
        return _way_to_thing(sketch, edge, owned=bool(owners))
    customers = [each for each in owners if not _works_here(sketch, each.to)]
    if _works_here(sketch, edge.to):
        if _only_works(sketch, edge) or (not edge.where and (customers or edge.table in of_customers)):
            return Way.MENTIONS
    elif role(edge) == "mentioning" and set(edge.columns) < set(key_of(table)):
        # Who follows, blocks or names somebody: the row says no more than that, so it goes with either.
        return Way.OWNS
    if edge.also and any(each.to == edge.to and not each.doubt for each in rivals):
        return Way.MENTIONS
    if acts(edge) and any(role(each) == "receiving" for each in to_people):
        return Way.MENTIONS
    if role(edge) == "acting" and any(
        each.by_email and name_the_same(samples, edge, each) for each in to_people
    ):
        # Whoever accepts an invitation is the one invited, also under another address.
        return Way.OWNS
    # That somebody who works here deals with a ticket does not make it less that of who opened it.
    owners = owners if _works_here(sketch, edge.to) else customers
    return _way_to_person(sketch, edge, rivals, owners, shared, samples)


def _works_here(sketch: Sketch, table: str) -> bool:
    person = sketch.person(table)
    return is_staff(table) or (person is not None and person.staff)


def _way_to_thing(sketch: Sketch, edge: Edge, *, owned: bool) -> Way:
    sources = sketch.sources.get(edge.to, ())
    if edge in sources or (sources and is_home(sketch.schema.tables[edge.to])):
        return Way.FROM
    if owned and is_one_of(edge.table, words.FINANCIAL) and not is_one_of(edge.to, words.FINANCIAL):
        # A booking is the customer's, and not that of whoever offers what is booked.
        return Way.MENTIONS
    # An order's latest invoice belongs to the order, not the order to it.
    chosen = role(edge) == "choosing" or edge.table in ancestors(sketch, edge.to)
    return Way.MENTIONS if chosen else Way.OWNS


def _way_to_person(
    sketch: Sketch, edge: Edge, rivals: list[Edge], owners: list[Edge], shared: Shared, samples: Samples
) -> Way:
    said = role(edge)
    if edge.where and said not in ("mentioning", "choosing"):
        # Owner, profile, subject: the pair says whose this very row is.
        return Way.OWNS
    about = any(role(each) == "" for each in owners)
    if said in ("mentioning", "choosing") or (about and said == "owning" and does_something(edge)):
        return Way.MENTIONS
    if said == "receiving":
        return Way.MENTIONS if owners else Way.OWNS
    if said == "acting" and any(
        each.to in shared.led and not _works_here(sketch, each.to) for each in rivals
    ):
        return Way.MENTIONS
    if said in ("making", "acting"):
        of_all = any(each.to in shared.tables and _is_filled(sketch, each, samples) for each in rivals)
        return Way.MENTIONS if owners or of_all or not tells(sketch.schema.tables[edge.table]) else Way.OWNS
    return Way.OWNS


def _is_filled(sketch: Sketch, edge: Edge, samples: Samples) -> bool:
    """Whether every row has it, by law or by habit."""
    rows = samples.rows(edge.table)
    return not sketch.nullable(edge) or (
        bool(rows) and all(row.get(name) is not None for row in rows for name in edge.columns)
    )


def _only_works(sketch: Sketch, edge: Edge) -> bool:
    """Who inspects a flat or checks a ticket has to do with it; it is not theirs."""
    said = role(edge)
    if said == "acting" or (said == "" and not edge.where and not names_target(edge)):
        return True
    # A tour can do without its driver, the driver's documents can't.
    needless = sketch.nullable(edge) and not tells(sketch.schema.tables[edge.table]) and not edge.where
    needless = needless and head_word(edge.to) not in table_words(edge.table)
    return needless or _of_others(sketch, edge)


def _of_others(sketch: Sketch, edge: Edge) -> bool:
    """Whether the row names somebody who does not work here: patient_name beside the doctor's number."""
    table = sketch.schema.tables[edge.table]
    return any(
        is_one_of(word, words.PEOPLE)
        for column in telling(table)
        if column not in edge.columns
        for word in split_name(column)[:-1]
    )


def ancestors(sketch: Sketch, table: str) -> set[str]:
    """The tables that rows of this one belong to, at any distance, and itself."""
    found = {table}
    while wider := {edge.to for name in found for edge in sketch.links.get(name, ())} - found:
        found |= wider
    return found


def _is_source(sketch: Sketch, edge: Edge, known: dict[str, list[Edge]], shared: Shared) -> bool:
    """Rows the person points at are theirs, if they are private and know no owner of their own."""
    if edge.to in sketch.links or sketch.person(edge.to) or edge.to == edge.table or edge.where:
        return False
    if is_one_of(edge.to, words.ORGANISATIONS):
        return False
    if shared.joint.get(edge.table) == edge.to:
        # A booking of several guests, an account of several holders: gone with the last of them.
        return is_one_of(edge.to, words.FINANCIAL) or "bank" in words_of(sketch.schema.tables[edge.to])
    own = [each for each in known[edge.to] if sketch.person(each.to) and role(each) in ("", "owning")]
    if (edge.to in shared.tables and not is_home(sketch.schema.tables[edge.to])) or own:
        return False
    target = sketch.schema.tables[edge.to]
    # What people's rows point at beside the people may be anybody: an insurer, a plumber, a landlord.
    return is_private(target) if edge.table in shared.selves else is_kept_by_one(target)


def _is_common(sketch: Sketch, edge: Edge, samples: Samples) -> bool:
    """A broker of many customers is no one customer's, whatever is known about the broker."""
    if is_home(sketch.schema.tables[edge.to]):
        return False
    owners = [] if sketch.person(edge.table) else sketch.links.get(edge.table, [])
    mine = [name for owner in owners for name in owner.columns]
    rows = [
        (tuple(row.get(name) for name in edge.columns), tuple(row.get(name) for name in mine) or place)
        for place, row in enumerate(samples.rows(edge.table))
        if row.get(edge.columns[0]) is not None
    ]
    return len(set(rows)) > _FEW * len({target for target, _ in rows})


def _trees(sketch: Sketch, known: list[Edge], samples: Samples) -> None:
    """Folders in folders: where only the root knows its owner, what hangs below it is the owner's too."""
    for edge in known:
        owners = sketch.links.get(edge.table, [])
        if edge.table != edge.to or not owners or sketch.person(edge.table):
            continue
        orphans = [
            row
            for row in samples.rows(edge.table)
            if all(row.get(name) is None for owner in owners for name in owner.columns)
            and all(row.get(name) is not None for name in edge.columns)
        ]
        if orphans:
            owners.append(edge)
