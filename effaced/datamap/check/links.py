"""Does every row belong to a person by its links, and to one person only?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from effaced.datamap.compile.corrections import UnsuitableValue, convert_value
from effaced.datamap.compile.key import KEY_FAMILIES
from effaced.datamap.compile.order import is_direct
from effaced.datamap.compile.retention_groups import columns_cutting_off
from effaced.datamap.load.reader import did_you_mean, one_of
from effaced.datamap.model.data_map import DataMap, Link, Mention, TableRule
from effaced.datamap.schema.tables import LiveColumn, LiveSchema, LiveTable

Finding = tuple[int, str]


def link_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    for table in data_map.tables.values():
        for link in table.links:
            yield from _column_problems(schema, data_map, table, link, "link")
            yield from _surrogates_merging_people(data_map, table, link)
            yield from _kept_under_deleted(data_map, table, link)
        yield from _links_to_itself(schema, table)
        for mention in table.mentions:
            yield from _column_problems(schema, data_map, table, mention.link, "mentions")
            yield from _mentioned_by_own_rows(data_map, table, mention)
            for column, rule in mention.columns.items():
                if table.name in schema.tables and column not in schema.tables[table.name].columns:
                    near = did_you_mean(column, schema.tables[table.name].columns)
                    yield rule.line, f"{table.name}.mentions: {table.name} has no column '{column}'{near}"


def inheritance_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    for name, children in schema.inheriting.items():
        if name in data_map.tables:
            yield (
                data_map.tables[name].line,
                f"{name}: {', '.join(children)} inherits from it, and an erasure would reach into those rows"
                " too; table inheritance is not supported",
            )


def reach_problems(data_map: DataMap, views: Iterable[DataMap]) -> Iterator[Finding]:
    """Tables whose links lead to nobody. `views` is the map as each kind of people sees it."""
    circular: set[str] = set()
    for cycle in find_cycles(data_map):
        circular.update(cycle)
        line = next(link.line for link in data_map.tables[cycle[0]].links if link.to == cycle[1])
        yield line, f"{cycle[0]}.link: the links form a cycle: {' -> '.join(cycle)}"
    subjects = {each.table for each in data_map.people}
    known = circular.union(subjects, *(view.own_tables for view in views))
    for name, table in data_map.tables.items():
        if table.owned and name not in known:
            yield table.line, f"{name}: no link leads from it to {' or '.join(sorted(subjects))}"
        for mention in table.mentions:
            if mention.link.to not in known:
                yield (
                    mention.link.line,
                    f"{name}.mentions: no row of {mention.link.to} is a person's",
                )


def find_cycles(data_map: DataMap) -> list[tuple[str, ...]]:
    """Links that lead back to where they started: the tables in order, the first again at the end."""
    cycles: list[tuple[str, ...]] = []
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            cycles.append((*trail[trail.index(name) :], name))
        elif name not in done and name in data_map.tables:
            for link in data_map.tables[name].links:
                if link.to != name:
                    walk(link.to, (*trail, name))
            done.add(name)

    for name in sorted(data_map.tables):
        walk(name, ())
    return cycles


def _column_problems(
    schema: LiveSchema, data_map: DataMap, table: TableRule, link: Link, what: str
) -> Iterator[Finding]:
    live, parent = schema.tables.get(table.name), schema.tables.get(link.to)
    if live is None or parent is None:
        return
    whole = True
    for own, other in link.on:
        mine, theirs = live.columns.get(own), parent.columns.get(other)
        if mine is None:
            yield (
                link.line,
                f"{table.name}.{what}: {table.name} has no column '{own}'{did_you_mean(own, live.columns)}",
            )
        if theirs is None:
            near = did_you_mean(other, parent.columns)
            yield link.line, f"{table.name}.{what}: {link.to} has no column '{other}'{near}"
        if mine is None or theirs is None:
            whole = False
        elif message := _mismatch(f"{table.name}.{own}", mine, f"{link.to}.{other}", theirs, link.as_text):
            yield link.line, f"{table.name}.{what}: {message}"
    yield from _condition_problems(schema, live, link, what)
    if whole and not link.back and not _names_one_person(schema, data_map, link):
        columns = ", ".join(link.targets)
        yield (
            link.line,
            f"{table.name}.{what}: {link.to}({columns}) is not unique, so a row of {table.name} could belong"
            " to several people; link to a key, or make it unique",
        )


def _condition_problems(schema: LiveSchema, live: LiveTable, link: Link, what: str) -> Iterator[Finding]:
    for name, values in link.where:
        column = live.columns.get(name)
        if column is None:
            near = did_you_mean(name, live.columns)
            yield link.line, f"{live.name}.{what}.where: {live.name} has no column '{name}'{near}"
            continue
        for value in values:
            try:
                convert_value(column, value, schema.dialect)
            except UnsuitableValue as unfit:
                yield link.line, f"{live.name}.{what}.where.{name}: {unfit}"


def _links_to_itself(schema: LiveSchema, table: TableRule) -> Iterator[Finding]:
    """What is wrong with links between rows of the same table, as in a tree."""
    within = [link for link in table.links if link.to == table.name]
    if not within:
        return
    line = within[0].line
    if len(within) == len(table.links):
        yield line, f"{table.name}.link: it leads to itself only; add the link that leads to a person"
    if any(link.back or link.as_text for link in within):
        yield line, f"{table.name}.link: a link to the same table takes neither 'from' nor 'as'"
    live = schema.tables.get(table.name)
    alike = len({link.targets for link in within}) == 1
    if not alike or (live and not live.determines(within[0].targets)):
        yield line, f"{table.name}.link: links to the same table must all lead to one and the same key of it"


def _mismatch(own: str, mine: LiveColumn, other: str, theirs: LiveColumn, as_text: bool) -> str | None:
    """Why comparing these two columns could miss rows, or match other people's."""
    if as_text:
        for name, column in ((own, mine), (other, theirs)):
            if not _is_whole_key(column):
                return f"{name} must be {one_of(KEY_FAMILIES)} to be compared as text"
        return None
    if mine.family != theirs.family:
        if mine.family and theirs.family:
            hint = (
                "; with 'as: text' they are compared as texts"
                if _is_whole_key(mine) and _is_whole_key(theirs)
                else ""
            )
            return f"{own} is {mine.family} but {other} is {theirs.family}, so they never match{hint}"
        unknown, known, family = (other, own, mine.family) if mine.family else (own, other, theirs.family)
        return f"{unknown} has no known type but {known} is {family}, so rows may not match; declare the type"
    if mine.collation != theirs.collation:
        return (
            f"{own} has the collation {mine.collation or 'unknown'} but {other} has"
            f" {theirs.collation or 'unknown'}, so one tells texts apart that the other takes for the same;"
            " make the collations equal"
        )
    return None


def _is_whole_key(column: LiveColumn) -> bool:
    """Whether the column can be a key, and holds no fractions."""
    return column.family in KEY_FAMILIES and not column.fractional


def _names_one_person(schema: LiveSchema, data_map: DataMap, link: Link) -> bool:
    """Whether rows that agree in the link's target columns always belong to the same person."""
    if schema.tables[link.to].determines(link.targets):
        return True
    parent = data_map.tables.get(link.to)
    links = [each for each in parent.links if not each.back and not each.where] if parent else []
    own = {column for each in links for column in each.columns}
    if parent and len(links) < len(parent.links):
        return False
    return bool(own) and own <= set(link.targets)


def _surrogates_merging_people(data_map: DataMap, table: TableRule, link: Link) -> Iterator[Finding]:
    """Surrogates that can repeat in a column by which rows are linked."""
    sides = [(table, column) for column in link.columns]
    if link.to in data_map.tables:
        sides += [(data_map.tables[link.to], column) for column in link.targets]
    for side, column in sides:
        rule = side.columns.get(column)
        if side.stays and rule and rule.can_repeat:
            yield (
                rule.line,
                f"{side.name}.{column}: {table.name} is linked by this column, and {rule.word} would make"
                " different people look like one; use random_unique or null",
            )


def _mentioned_by_own_rows(data_map: DataMap, table: TableRule, mention: Mention) -> Iterator[Finding]:
    """The person's own rows that the erasure detaches from them, and that would go on mentioning them."""
    link = mention.link
    if not all(each.to in data_map.tables for each in (link, *table.links)):
        return  # another check reports that
    if not (table.owned and table.stays):
        return
    cut = next(columns_cutting_off(data_map, table.name), None)
    if cut and not _stops_mentioning(data_map, table, mention):
        yield (
            link.line,
            f"{table.name}.mentions: the erasure changes {cut}, so the person's own rows of {table.name} will"
            f" lead to them no more, but still mention them; let {table.name}.{link.columns[0]} be delete in"
            " their columns, too",
        )


def _stops_mentioning(data_map: DataMap, table: TableRule, mention: Mention) -> bool:
    """Whether the person's own rows no longer mention them after the erasure, or were changed alike."""
    link, other = mention.link, data_map.tables[mention.link.to]
    pointer_changes = any(column in table.changed for column in link.columns)
    condition_fails = any(table.clears(column) and None not in values for column, values in link.where)
    rules_agree = all(table.columns.get(column) == rule for column, rule in mention.columns.items())
    target_goes = not is_direct(data_map, link) and any(other.loses(column) for column in link.targets)
    return pointer_changes or condition_fails or rules_agree or target_goes


def _kept_under_deleted(data_map: DataMap, table: TableRule, link: Link) -> Iterator[Finding]:
    """A row that stays must not need a row that is deleted."""
    other = data_map.tables.get(link.to)
    if other is None or link.to == table.name:
        return
    kept, gone = (other, table) if link.back else (table, other)
    columns = link.targets if link.back else link.columns
    lets_go = any(column in kept.changed for column in columns)
    if gone.stays or not kept.stays or lets_go:
        return
    why = next(name for name, rule in kept.columns.items() if rule.keeps_row)
    whose = "point at" if link.back else "belong to"
    yield (
        link.line,
        f"{kept.name}: its rows stay because of {why}, but the rows of {gone.name} that they {whose} are"
        f" deleted; keep those (anonymise or retain a column of {gone.name}) or delete"
        f" {kept.name}.{columns[0]} too",
    )
