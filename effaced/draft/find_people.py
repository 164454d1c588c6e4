"""Which tables have one row per person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from effaced.core.errors import ConfigurationError
from effaced.datamap.compile.key import KEY_FAMILIES
from effaced.datamap.schema.tables import LiveSchema, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.concepts import BY_WORD
from effaced.datamap.vocabulary.names import (
    concept_in,
    head_word,
    is_one_of,
    singular,
    split_name,
    table_words,
)
from effaced.draft.roles import is_staff, role
from effaced.draft.samples import Samples, shape
from effaced.draft.sketch import Edge, Person

# What a column adds to the thought that each row is somebody.
_WEIGHTS = {
    "email": 4,
    "first_name": 4,
    "last_name": 4,
    "full_name": 3,
    "birth": 3,
    "login": 3,
    "secret": 2,
    "number_of_person": 2,
    "gender": 2,
    "phone": 1,
    "salutation": 1,
}
# What a shop or a hotel does not have.
_OF_PEOPLE_ALONE = {
    "first name",
    "last name",
    "a person's name",
    "date of birth",
    "login name",
    "password or secret",
    "gender",
}
_FOUND_BY = {"e-mail address", "phone number", "login name", "official number of a person"}
_ENOUGH = 10
# From so many sampled addresses on, and such a part of them, two tables have the same people.
_SOME, _ALL = 3, 0.95


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table that may be about people, with its figures."""

    table: LiveTable
    key: tuple[str, ...]
    named: int
    telling: tuple[str, ...]
    pointing: int
    score: int

    @property
    def sure(self) -> bool:
        third = is_one_of(self.table.name, words.THIRD_PARTIES) and "e-mail address" in self.telling
        return self.named >= 6 or third or bool(_OF_PEOPLE_ALONE & set(self.telling))

    @property
    def perhaps(self) -> bool:
        """Called like people who are mostly known through others: contacts, profiles."""
        return is_one_of(self.table.name, words.PERHAPS_PEOPLE)

    @property
    def figures(self) -> str:
        said = ["named like people"] if self.named >= 6 else []
        if self.telling:
            said.append(f"columns for {', '.join(self.telling[:5])}")
        said.append("1 table points at it" if self.pointing == 1 else f"{self.pointing} tables point at it")
        return f"{'; '.join(said)}; score {self.score}, {_ENOUGH} is enough"

    @property
    def runner_up(self) -> str:
        """Why it was not chosen."""
        if self.score < _ENOUGH:
            return f"{self.table.name} ({self.figures})"
        why = "but known through others" if self.sure else "but nothing in it that only people have"
        return f"{self.table.name} ({self.figures}, {why})"


def find_people(
    schema: LiveSchema, samples: Samples, edges: Iterable[Edge], wanted: Iterable[str] = ()
) -> tuple[list[Person], list[str]]:
    """The tables of people, the one that most others hang on first; and the runners-up, in words."""
    edges = list(edges)
    candidates = sorted(
        (_candidate(samples, table, edges) for table in schema.tables.values()),
        key=lambda c: (-c.score, c.table.name),
    )
    named = list(wanted)
    if named:
        chosen = [_asked_for(candidates, name) for name in named]
    else:
        likely = [each for each in candidates if each.score >= _ENOUGH and each.key and _holds_people(each)]
        likely = [each for each in likely if not _is_part(each, edges)]
        # What is not called after people, and has nothing that only people have, is second best.
        likely = [each for each in likely if each.sure] or likely
        chosen = [
            each
            for each in likely
            if not _belongs_to_another(each, likely, edges)
            and not _are_others(samples, each, likely)
            and not _hangs_below(each, likely, edges)
        ]
    people = [
        Person(
            each.table.name,
            _kind(each.table.name),
            each.key,
            is_staff(each.table.name),
            "named with --subject" if named else each.figures,
        )
        for each in chosen
    ]
    people.sort(key=lambda person: person.staff)
    others = [each.runner_up for each in candidates if each not in chosen and each.score >= _ENOUGH - 3]
    return _with_own_kinds(people), others[:4]


def _asked_for(candidates: list[Candidate], name: str) -> Candidate:
    found = next((each for each in candidates if each.table.name == name), None)
    if found is None:
        raise ConfigurationError(f"--subject: the database has no table '{name}'.")
    if not found.key:
        raise ConfigurationError(
            f"--subject: '{name}' has no primary key or unique column of texts, whole numbers or UUIDs."
        )
    return found


def _candidate(samples: Samples, table: LiveTable, edges: list[Edge]) -> Candidate:
    found = dict(_concepts(samples, table))
    if found.pop("name", None) and not is_one_of(table.name, words.ORGANISATIONS):
        found.setdefault("full_name", "a name")
    named = _named(table.name)
    pointing = len({edge.table for edge in edges if edge.to == table.name and edge.table != table.name})
    telling = sum(_WEIGHTS[word] for word in found)
    score = named + min(telling, 12) + min(pointing, 5)
    if not found:
        score = 0
    elif not named and telling < 8:
        # Worth naming, if nothing better is found, but not worth choosing.
        score = min(score, _ENOUGH - 1)
    return Candidate(table, key_of(table), named, tuple(found.values()), pointing, score)


def _concepts(samples: Samples, table: LiveTable) -> Iterator[tuple[str, str]]:
    """What the columns say about somebody: by their names, or by e-mail addresses in them."""
    named = _named(table.name) > 0
    for column in table.columns.values():
        if not named and set(split_name(column.name)[:1]) & set(words.CONTACTS):
            # Who has a contact person is none.
            continue
        concept = concept_in(table, column)
        if concept is None and column.family == "text":
            seen = shape(samples.values(table.name, column.name))
            concept = BY_WORD[seen] if seen == "email" else None
        if concept and (concept.word in _WEIGHTS or concept.word == "name"):
            yield concept.word, concept.label


def _named(name: str) -> int:
    if any(word in words.PROGRAMS for word in table_words(name)[:-1]):
        return -6
    if is_one_of(name, words.PEOPLE) or is_one_of(name, words.STAFF):
        return 8
    if is_one_of(name, words.PERHAPS_PEOPLE):
        return 3
    # A table that begins with people but ends in something else holds that: customer_orders, user_roles.
    return -6 if is_one_of(name, words.ORGANISATIONS) or len(table_words(name)) > 1 else 0


def _holds_people(candidate: Candidate) -> bool:
    known = {
        "e-mail address",
        "first name",
        "last name",
        "a person's name",
        "a name",
        "login name",
        "date of birth",
    }
    return bool(known & set(candidate.telling))


def _is_part(one: Candidate, edges: list[Edge]) -> bool:
    """A beneficiary of a policy: the row is numbered within it, or nobody could be found by it; and nothing
    needs it."""
    above = [edge for edge in edges if edge.table == one.table.name and edge.to != edge.table]
    inner = any(set(edge.columns) < set(one.key) for edge in above)
    unfindable = any(edge.foreign_key for edge in above) and not _FOUND_BY & set(one.telling)
    return (inner or unfindable) and not one.pointing


def _are_others(samples: Samples, one: Candidate, likely: list[Candidate]) -> bool:
    """Subscribers of a newsletter who all are customers: nothing needs the rows, and the addresses fit."""
    if one.pointing or is_one_of(one.table.name, words.STAFF):
        return False
    for other in likely:
        if other is one or not other.pointing:
            continue
        for mine, theirs in product(_addresses(samples, one.table), _addresses(samples, other.table)):
            share = samples.share(one.table.name, other.table.name, ((mine, theirs),))
            if share and share.of >= _SOME and share.part >= _ALL:
                return True
    return False


def _addresses(samples: Samples, table: LiveTable) -> list[str]:
    texts = [column for column in table.columns.values() if column.family == "text"]
    return [each.name for each in texts if shape(samples.values(table.name, each.name)) == "email"]


def _belongs_to_another(one: Candidate, likely: list[Candidate], edges: list[Edge]) -> bool:
    """A profile of a user, a relative of a patient: people, but known through somebody else."""
    for edge in edges:
        other = next((each for each in likely if each.table.name == edge.to), None)
        if edge.table != one.table.name or other is None or other is one or edge.doubt:
            continue
        if edge.where:
            # A login whose profile is a tenant or an agent.
            if role(edge) == "" and other.pointing > one.pointing:
                return True
            continue
        columns = one.table.columns
        needed = one.perhaps or not any(columns[name].nullable for name in edge.columns)
        # Patients need a doctor, and are not the doctor's.
        led_by_staff = is_staff(edge.to) and not is_staff(one.table.name)
        if needed and role(edge) in ("", "owning") and not led_by_staff:
            return True
        if one.table.determines(edge.columns) and other.score >= one.score:
            return True
    return False


def _hangs_below(one: Candidate, likely: list[Candidate], edges: list[Edge]) -> bool:
    """An attendee of a booking: nothing points at them, and what they are part of is another's."""
    if one.pointing:
        return False
    columns = one.table.columns
    seen = {one.table.name}
    ahead = {
        edge.to
        for edge in edges
        if edge.table == one.table.name
        and not edge.where
        and role(edge) in ("", "owning")
        and not any(columns[name].nullable for name in edge.columns)
    }
    better = {each.table.name for each in likely if each.score > one.score and not is_staff(each.table.name)}
    while ahead - seen:
        if ahead & better:
            return True
        seen |= ahead
        # Whoever belongs to an organisation is not its owner's.
        ahead = {name for name in ahead if not is_one_of(name, words.ORGANISATIONS)}
        ahead = {edge.to for edge in edges if edge.table in ahead and role(edge) in ("", "owning")}
    return False


def key_of(table: LiveTable) -> tuple[str, ...]:
    """The columns that name a row: its primary key, or the first that are unique; none if there are none."""
    for unique in table.uniques:
        columns = [table.columns[name] for name in table.columns if name in unique.columns]
        whole = all(
            each.family in KEY_FAMILIES and not each.fractional and not each.nullable for each in columns
        )
        if unique.whole and columns and whole:
            return tuple(each.name for each in columns)
    return ()


def _kind(table: str) -> str:
    if is_staff(table) and not is_one_of(table, words.STAFF):
        return "_".join(table_words(table))
    return singular(head_word(table)) or "person"


def _with_own_kinds(people: list[Person]) -> list[Person]:
    """Kinds are names, so no two may be the same."""
    seen: dict[str, int] = {}
    for person in people:
        seen[person.kind] = seen.get(person.kind, 0) + 1
    return [
        person
        if seen[person.kind] == 1
        else Person(
            person.table, "_".join(table_words(person.table)), person.key, person.staff, person.reason
        )
        for person in people
    ]
