"""What happens to each column: rows that go, rows that a law keeps, rows that stay without the person."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from effaced.datamap.schema.tables import LiveColumn, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import is_one_of, split_name, system_of
from effaced.draft.doubts import guessed_link, link_doubt, mention_doubt
from effaced.draft.find_emails import same_addresses
from effaced.draft.find_owners import ancestors
from effaced.draft.laws import BESIDE_THE_RECORD, ON_THE_RECORD, WHO, retain
from effaced.draft.look import Look, json_rules, look_at
from effaced.draft.private import is_private, lone_keys, telling
from effaced.draft.samples import Samples, is_random
from effaced.draft.sketch import Edge, Person, Rule, Sketch
from effaced.draft.surrogates import surrogate_for

_NEEDED = '{retain: {basis: "needed by kept records"}}'


@dataclass(frozen=True, slots=True)
class Guesser:
    """Says what happens to the columns of one table after the other."""

    sketch: Sketch
    samples: Samples

    def rules(self, name: str) -> dict[str, Rule]:
        table = self.sketch.schema.tables[name]
        if name not in self.sketch.stays:
            guess = self._going
        else:
            guess = self._recorded if name in self.sketch.records else self._staying
        rules = {
            column.name: _generated(table, column) or guess(table, column)
            for column in table.columns.values()
        }
        rules |= self._also_elsewhere(table, rules)
        return self._keeps_something(name, rules) if name in self.sketch.stays else rules

    def _also_elsewhere(self, table: LiveTable, rules: dict[str, Rule]) -> dict[str, Rule]:
        """Addresses that people of another kind have too: whoever is erased there is left here."""
        found = {}
        people = self.sketch.people if self.sketch.person(table.name) else []
        names = [person.table for person in people]
        before = names[: names.index(table.name)] if names else []
        for other in (self.sketch.schema.tables[each] for each in before):
            for mine, theirs in same_addresses(self.samples, table, other):
                if not rules[mine].doubt:
                    doubt = (
                        f"most of these addresses are in {other.name}.{theirs} too: if they are the same"
                        " people, erasing them there leaves them here; have both erased, or link"
                        f" {table.name} to {other.name}"
                    )
                    found[mine] = replace(rules[mine], doubt=doubt)
        return found

    # --- rows that go --------------------------------------------------------------------------------

    def _going(self, table: LiveTable, column: LiveColumn) -> Rule:
        edges = [edge for edge in self._links(table.name) if column.name in edge.columns]
        if edges:
            first = column.name == self._links(table.name)[0].columns[0]
            return Rule("delete", f"leads to {edges[0].to}", link_doubt(self.sketch, edges[0], first=first))
        return Rule("delete", self._said(table, column), mention_doubt(self.sketch, table, column))

    # --- records that a law may want -----------------------------------------------------------------

    def _recorded(self, table: LiveTable, column: LiveColumn) -> Rule:
        aside = self._aside(table, column)
        if aside is not None:
            return aside
        doubt = f"no basis is known; name the law that wants {table.name} kept"
        if guess := guessed_link(self.sketch, table, column):
            doubt = f"{guess}; and {doubt}"
        rule = retain(table, self.sketch.records[table.name], dated=self._can_end(table))
        return Rule(rule, self._said(table, column), doubt)

    def _aside(self, table: LiveTable, column: LiveColumn) -> Rule | None:
        """What is in the record and no law wants: contact details, remarks, machines."""
        law = self.sketch.records[table.name]
        look = self._look(table, column)
        word = look.concept.word if look.concept else ""
        remark = (
            word == "free_text" and law == "financial" and not ON_THE_RECORD & set(split_name(column.name))
        )
        linking = any(column.name in edge.columns for edge in self._links(table.name))
        if not (remark or word in BESIDE_THE_RECORD[law]) or (linking and word != "email"):
            return None
        fitting = surrogate_for(table, column, look.concept)
        if fitting is None or column.name in self._targets(table.name):
            return None
        # `delete` makes it NULL as well, and does not keep the row when its retention has ended.
        yaml = "delete" if fitting == "{anonymise: null}" else fitting
        return Rule(yaml, f"{look.reason}; the record can do without")

    def _can_end(self, table: LiveTable) -> bool:
        """Whether rows can go when their time is over: found again, and neither needed nor kept."""
        sketch = self.sketch
        ways = [edge for found in [*sketch.links.values(), *sketch.mentions.values()] for edge in found]
        if any(edge.to == table.name != edge.table and edge.table in sketch.stays for edge in ways):
            return False
        above = ancestors(sketch, table.name)
        # An e-mail address is changed by the erasure; nothing is found by it afterwards.
        lost = any(
            self._is_email(sketch.schema.tables[edge.to], sketch.schema.tables[edge.to].columns[other])
            for name in above
            for edge in sketch.links.get(name, ())
            for _, other in edge.on
        )
        asides = [self._aside(table, column) for column in table.columns.values()]
        stay = any(aside is not None and aside.yaml != "delete" for aside in asides)
        return not lost and not stay and not above & sketch.sources.keys()

    # --- rows that stay without the person -----------------------------------------------------------

    def _staying(self, table: LiveTable, column: LiveColumn) -> Rule:
        pointed = column.name in self._targets(table.name)
        person = self.sketch.person(table.name)
        somebody = self.sketch.is_self(table.name)
        if person and column.name in person.key and column.family in ("number", "uuid"):
            return Rule("not_personal", "the row's own key; rows that stay point at it")
        pointer = self._pointer(table, column)
        if pointer is not None:
            return pointer
        look = self._look(table, column)
        fitting = surrogate_for(table, column, look.concept)
        if pointed and is_random(self.samples.values(table.name, column.name)):
            return Rule("not_personal", "an id that a machine made up; rows that stay point at it")
        if pointed:
            doubt = "rows that stay may go by this value, so it can't change; say on which basis it is kept"
            return Rule(_NEEDED, look.reason, doubt)
        if column.family == "json":
            return self._document(table, column, fitting or "{anonymise: empty}")
        if system_of(column.name):
            return _fitted(fitting, "how another system knows the person; see refs")
        if look.doubt:
            return Rule(fitting or "not_personal", look.reason, f"{look.reason}: {look.doubt}")
        if person and look.concept and (law := self._identity(person).get(look.concept.word)):
            doubt = (
                f"no basis is known; the records of {table.name} that are kept may be of no use without it"
            )
            return Rule(retain(table, law, dated=False), look.reason, doubt)
        if look.telling:
            return _fitted(fitting, look.reason)
        if somebody and look.concept and look.concept.word == "number":
            return Rule(fitting or "not_personal", look.reason, "others may know the person by this number")
        if person and column.family in ("text", "number", "uuid") and table.determines([column.name]):
            doubt = "no two people have the same, so others may know the person by it"
            return Rule(fitting or "not_personal", look.reason, doubt)
        return Rule("not_personal", f"{look.reason}; says nothing once nobody is named")

    def _identity(self, person: Person) -> dict[str, str]:
        """What kept records need of the person's own row, and by which law: a finding is about somebody."""
        found: dict[str, str] = {}
        for table, law in self.sketch.records.items():
            if person.table in ancestors(self.sketch, table):
                found |= dict.fromkeys(
                    WHO[law] if law != "financial" or self._needs_a_name(table) else (), law
                )
        return found

    def _needs_a_name(self, table: str) -> bool:
        """Whether it is an invoice that does not say itself to whom it went; a line of one need not."""
        if any(edge.to in self.sketch.records for edge in self._links(table)):
            return False
        return is_one_of(table, words.INVOICES) and not telling(self.sketch.schema.tables[table])

    def _pointer(self, table: LiveTable, column: LiveColumn) -> Rule | None:
        """Pointers stay while what they point at stays."""
        sketch = self.sketch
        edges = [*self._links(table.name), *sketch.mentions.get(table.name, ())]
        edges += [edge for edges in sketch.sources.values() for edge in edges if edge.table == table.name]
        for edge in edges:
            if column.name in edge.columns and not self._is_email(table, column):
                if edge.to in sketch.stays:
                    doubt = guessed_link(self.sketch, table, column)
                    return Rule("not_personal", f"points at {edge.to}, whose row stays", doubt)
                doubt = mention_doubt(self.sketch, table, column)
                return Rule("{anonymise: null}", f"points at {edge.to}, whose row goes", doubt)
        for edge in sketch.pointers:
            known = (
                edge.table == table.name and column.name in edge.columns and edge.to not in sketch.personal
            )
            if known and not self._look(table, column).telling_by_name:
                return Rule("not_personal", f"points at {edge.to}, which is about nobody")
        return None

    def _document(self, table: LiveTable, column: LiveColumn, otherwise: str) -> Rule:
        paths, read, hidden = json_rules(self.samples.values(table.name, column.name))
        if hidden:
            return Rule(otherwise, "JSON", "it holds personal data under keys that vary")
        if not paths:
            seen = f"nothing personal seen in {read} sampled documents" if read else "no document to look at"
            return Rule(otherwise, "JSON", f"{seen}; others may hold some")
        inner = ", ".join(f"{json.dumps(path)}: delete" for path in paths)
        labels = ", ".join(dict.fromkeys(paths.values()))
        return Rule(f"{{json: {{{inner}}}}}", f"JSON: {labels} in {read} sampled documents")

    def _keeps_something(self, name: str, rules: dict[str, Rule]) -> dict[str, Rule]:
        """A row stays only if a column says so; where none does, the link to the person stays on purpose."""
        if any(word in rule.yaml for rule in rules.values() for word in ("anonymise", "retain", "json")):
            return rules
        edge = next(iter(self._links(name)), None)
        column = edge.columns[0] if edge else next(iter(rules))
        doubt = f"the row stays because {self.sketch.stays[name]}; say on which basis"
        return {**rules, column: Rule(_NEEDED, rules[column].reason, doubt)}

    # --- what is asked again and again ---------------------------------------------------------------

    def _links(self, table: str) -> list[Edge]:
        return self.sketch.links.get(table, [])

    def _said(self, table: LiveTable, column: LiveColumn) -> str:
        """What is said about a column whose fate is clear without a closer look."""
        sketch = self.sketch
        keys = [
            key.to
            for key in sketch.schema.foreign_keys
            if key.table == table.name and column.name in key.columns
        ]
        ways = [edge for edges in [*sketch.links.values(), *sketch.sources.values()] for edge in edges]
        ways += sketch.mentions.get(table.name, ())
        keys += [edge.to for edge in ways if edge.table == table.name and column.name in edge.columns]
        look = self._look(table, column)
        return f"points at {keys[0]}" if keys else look.reason if look.concept else "part of the row"

    def _look(self, table: LiveTable, column: LiveColumn) -> Look:
        of_person = self.sketch.is_self(table.name) or is_private(table)
        return look_at(self.samples, table, column, of_person=of_person)

    def _is_email(self, table: LiveTable, column: LiveColumn) -> bool:
        look = self._look(table, column)
        return look.concept is not None and look.concept.word == "email"

    def _targets(self, table: str) -> set[str]:
        """Columns that foreign keys or ways of others go by; e-mail addresses may change all the same."""
        sketch = self.sketch
        live = sketch.schema.tables[table]
        found = {other for key in sketch.schema.foreign_keys if key.to == table for _, other in key.on}
        for edge in (edge for edges in [*sketch.links.values(), *sketch.mentions.values()] for edge in edges):
            if edge.to == table and edge.table in sketch.stays:
                found |= {other for _, other in edge.on if not self._is_email(live, live.columns[other])}
        person = sketch.person(table)
        return found | set(person.key if person else ())


def _generated(table: LiveTable, column: LiveColumn) -> Rule | None:
    if column.name in lone_keys(table):
        return Rule("not_personal", "the row's own key")
    if not column.generated:
        return None
    # A number that the database counts up is made from nothing; anything else is made from other columns.
    counted = column.family == "number" and any(column.name in unique.columns for unique in table.uniques)
    return (
        Rule("not_personal", "counted by the database")
        if counted
        else Rule("derived", "made by the database")
    )


def _fitted(fitting: str | None, reason: str) -> Rule:
    if fitting is not None:
        return Rule(fitting, reason)
    doubt = f"{reason}; no surrogate surely fits the column: let it be NULL, choose a value, or keep it"
    return Rule('{retain: {basis: "can not be changed"}}', reason, doubt)
