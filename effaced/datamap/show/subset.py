"""A part of the map to look at: the tables somebody searches for, and those between them and the people."""

from __future__ import annotations

from dataclasses import replace

from effaced.datamap.model.data_map import DataMap


def find_tables(data_map: DataMap, word: str) -> list[str]:
    """The tables with the word in their name or in a column's, whatever its case; not_personal ones last."""
    wanted = word.casefold()
    tables = [
        name
        for name, rule in data_map.tables.items()
        if any(wanted in each.casefold() for each in (name, *rule.columns))
    ]
    return tables + [name for name in sorted(data_map.not_personal) if wanted in name.casefold()]


def restrict_to_tables(data_map: DataMap, names: list[str]) -> DataMap:
    """The map of these tables and of all that they link to. Its hash stays that of the whole."""
    pending, seen = [name for name in names if name in data_map.tables], set[str]()
    while pending:
        name = pending.pop()
        if name in seen or name not in data_map.tables:
            continue
        seen.add(name)
        rule = data_map.tables[name]
        pending += [link.to for link in (*rule.links, *(each.link for each in rule.mentions))]
    return replace(
        data_map,
        tables={name: rule for name, rule in data_map.tables.items() if name in seen},
        not_personal={name: line for name, line in data_map.not_personal.items() if name in names},
        undecided={},
        whole=data_map.whole or data_map,
    )
