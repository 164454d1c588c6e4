"""Can every row be reached, by one person only, and go without tearing anything that stays?"""

from __future__ import annotations

from collections.abc import Iterator

from effaced.datamap.model import DataMap, Link, Surrogate, TableRule
from effaced.datamap.reader import closest
from effaced.datamap.schema import ForeignKey, LiveColumn, LiveSchema

Finding = tuple[int, str]
_MERGING = (Surrogate.FIXED_TEXT, Surrogate.TRUNCATED_DATE)


def link_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    for table in data_map.tables.values():
        for link in table.links:
            yield from _columns(schema, data_map, table, link)
            yield from _merging(data_map, table, link)
            yield from _kept_under_deleted(data_map, table, link)
    yield from _unreachable(data_map)
    for key in schema.foreign_keys:
        yield from _foreign_key(data_map, key)
    for key in schema.outside:
        yield from _from_outside(data_map, key)
    for name, children in schema.heirs.items():
        if name in data_map.tables:
            yield (
                data_map.tables[name].line,
                f"{name}: {', '.join(children)} inherits from it, and an erasure would reach into those rows"
                " too; table inheritance is not supported",
            )


def find_cycles(data_map: DataMap) -> list[tuple[str, ...]]:
    """Links that lead back to where they started, each as the tables in turn, first and last the same."""
    cycles: list[tuple[str, ...]] = []
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            cycles.append((*trail[trail.index(name) :], name))
        elif name not in done and name in data_map.tables:
            for link in data_map.tables[name].links:
                walk(link.to, (*trail, name))
            done.add(name)

    for name in sorted(data_map.tables):
        walk(name, ())
    return cycles


def _columns(schema: LiveSchema, data_map: DataMap, table: TableRule, link: Link) -> Iterator[Finding]:
    live, parent = schema.tables.get(table.name), schema.tables.get(link.to)
    if live is None or parent is None:
        return
    whole = True
    for own, other in link.on:
        mine, theirs = live.columns.get(own), parent.columns.get(other)
        if mine is None:
            yield (
                link.line,
                f"{table.name}.link: {table.name} has no column '{own}'{closest(own, live.columns)}",
            )
        if theirs is None:
            near = closest(other, parent.columns)
            yield link.line, f"{table.name}.link: {link.to} has no column '{other}'{near}"
        if mine is None or theirs is None:
            whole = False
        elif message := _mismatch(f"{table.name}.{own}", mine, f"{link.to}.{other}", theirs):
            yield link.line, f"{table.name}.link: {message}"
    if whole and not _names_one_person(schema, data_map, link):
        columns = ", ".join(link.targets)
        yield (
            link.line,
            f"{table.name}.link: {link.to}({columns}) is not unique, so a row of {table.name} could belong to"
            " several people; link to a key, or make it unique",
        )


def _mismatch(own: str, mine: LiveColumn, other: str, theirs: LiveColumn) -> str | None:
    """Why the link could pass over rows, or take those of others."""
    if mine.family != theirs.family:
        if mine.family and theirs.family:
            return f"{own} is {mine.family} but {other} is {theirs.family}, so they never match"
        unknown, known, family = (other, own, mine.family) if mine.family else (own, other, theirs.family)
        return f"{unknown} has no known type but {known} is {family}, so rows may not match; declare the type"
    if mine.collation != theirs.collation:
        return (
            f"{own} has the collation {mine.collation or 'unknown'} but {other} has"
            f" {theirs.collation or 'unknown'}, so one tells texts apart that the other takes for the same;"
            " make the collations equal"
        )
    return None


def _names_one_person(schema: LiveSchema, data_map: DataMap, link: Link) -> bool:
    """Rows that agree in their own link columns belong to the same person, unique or not."""
    if schema.tables[link.to].determines(link.targets):
        return True
    parent = data_map.tables.get(link.to)
    own = {column for each in parent.links for column in each.columns} if parent else set()
    return bool(own) and own <= set(link.targets)


def _merging(data_map: DataMap, table: TableRule, link: Link) -> Iterator[Finding]:
    sides = [(table, column) for column in link.columns]
    if link.to in data_map.tables:
        sides += [(data_map.tables[link.to], column) for column in link.targets]
    for side, column in sides:
        rule = side.columns.get(column)
        if side.stays and rule and rule.written in _MERGING:
            yield (
                rule.line,
                f"{side.name}.{column}: {table.name} is linked by this column, and {rule.written} would make"
                " different people look like one; use random_unique or null",
            )


def _kept_under_deleted(data_map: DataMap, table: TableRule, link: Link) -> Iterator[Finding]:
    parent = data_map.tables.get(link.to)
    if parent is None or parent.stays or not table.stays or _cuts(table, link):
        return
    kept = next(name for name, rule in table.columns.items() if rule.keeps_row)
    yield (
        link.line,
        f"{table.name}: its rows stay because of {kept}, but the rows of {link.to} that they belong to are"
        f" deleted; keep those (anonymise or retain a column of {link.to}) or delete"
        f" {table.name}.{link.columns[0]} too",
    )


def _cuts(table: TableRule, link: Link) -> bool:
    """Whether the row that stays lets go of its parent."""
    return any(column in table.changed for column in link.columns)


def _unreachable(data_map: DataMap) -> Iterator[Finding]:
    circular: set[str] = set()
    for cycle in find_cycles(data_map):
        circular.update(cycle)
        line = next(link.line for link in data_map.tables[cycle[0]].links if link.to == cycle[1])
        yield line, f"{cycle[0]}.link: the links run in a circle: {' -> '.join(cycle)}"
    for name, table in data_map.tables.items():
        if name not in circular and next(data_map.paths(name), None) is None:
            yield table.line, f"{name}: no link leads from it to {data_map.subject}"


def _foreign_key(data_map: DataMap, key: ForeignKey) -> Iterator[Finding]:
    child, parent = data_map.tables.get(key.table), data_map.tables.get(key.to)
    yield from _written_pointers(child, key)
    if parent is None or not any(parent.loses(column) for _, column in key.on):
        return
    conflict = f"{key} points at rows of {key.to} that the map {'changes' if parent.stays else 'deletes'}"
    if key.table in data_map.not_personal:
        yield (
            data_map.not_personal[key.table],
            f"{key.table}: its foreign key {conflict}, so it is not without personal data; give it a link",
        )
    if child is None:
        return
    if child is parent:
        # One statement takes all of a person's rows, so they may point at each other. If somebody else's
        # row points at one, the database refuses, unless it has been told to act on that row instead.
        if parent.stays or key.acts or parent.name == data_map.subject:
            yield (
                child.line,
                f"{key.table}: its foreign key {conflict}, from other people's rows too; anonymise instead",
            )
        return
    covered = any(link.to == key.to and set(link.on) <= set(key.on) for link in child.links)
    if not covered:
        yield child.line, f"{key.table}: its foreign key {conflict}{_not_covered(data_map, key)}"
    elif child.stays and parent.stays and not any(child.nulls(column) for column in key.columns):
        yield child.line, f"{key.table}: its foreign key {conflict}, but {key.table}.{key.columns[0]} is kept"


def _from_outside(data_map: DataMap, key: ForeignKey) -> Iterator[Finding]:
    parent = data_map.tables.get(key.to)
    if parent and any(parent.loses(column) for _, column in key.on):
        yield (
            parent.line,
            f"{key.to}: the foreign key {key.name} of {key.table}, a table outside the search path, points at"
            f" rows that the map {'changes' if parent.stays else 'deletes'}, and no link can reach its rows;"
            f" add the schema to the search path and declare the table, or keep the rows of {key.to}",
        )


def _not_covered(data_map: DataMap, key: ForeignKey) -> str:
    for way in data_map.paths(key.to):
        if key.table in way:
            circle = (key.table, *way[: way.index(key.table) + 1])
            return f" first; the pointers run in a circle: {' -> '.join(circle)}"
    pairs = ", ".join(f"{own}: {other}" for own, other in key.on)
    return f", from rows that no link reaches; add the link {{to: {key.to}, on: {{{pairs}}}}}"


def _written_pointers(child: TableRule | None, key: ForeignKey) -> Iterator[Finding]:
    for column in key.columns if child and child.stays else ():
        rule = child.columns.get(column) if child else None
        if rule and rule.changes and rule.written is not Surrogate.NULL:
            yield (
                rule.line,
                f"{key.table}.{column}: the foreign key {key} allows no {rule.written} here; use null",
            )
