"""Rows that have no owner and know somebody by an e-mail address that no link can go by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from effaced.draft.find_emails import holds_email
from effaced.draft.samples import Samples
from effaced.draft.sketch import Rule, Sketch


def mark_guests(sketch: Sketch, samples: Samples, name: str, rules: Mapping[str, Rule]) -> Mapping[str, Rule]:
    """The same rules, with a doubt at the address if sampled rows of guests would not be found."""
    links = sketch.links.get(name, [])
    owned = {own for edge in links for own in edge.columns}
    if not links or any(edge.by_email or not sketch.nullable(edge) for edge in links):
        return rules
    table = sketch.schema.tables[name]
    for column in table.columns.values():
        if column.name in owned or not holds_email(samples, table, column):
            continue
        guests = [
            row
            for row in samples.rows(name)
            if row.get(column.name) and all(row.get(own) is None for own in owned)
        ]
        places = (_address(sketch, samples, person.table) for person in sketch.people)
        where = next((place for place in places if place), "")
        if guests and where and not rules[column.name].doubt:
            doubt = (
                f"rows without {links[0].columns[0]} know somebody by this address alone, and are not found:"
                f" no link can go by {where} unless it is unique"
            )
            return {**rules, column.name: replace(rules[column.name], doubt=doubt)}
    return rules


def _address(sketch: Sketch, samples: Samples, name: str) -> str:
    table = sketch.schema.tables[name]
    found = next((each for each in table.columns.values() if holds_email(samples, table, each)), None)
    return f"{name}.{found.name}" if found and not table.determines([found.name]) else ""
