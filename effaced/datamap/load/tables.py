"""The `tables:` of the data map: how rows belong to people, and where they only mention them."""

from __future__ import annotations

import re
from collections.abc import Collection

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from effaced.datamap.load.columns import read_columns
from effaced.datamap.load.reader import Reader, did_you_mean, is_null, line_of
from effaced.datamap.model.data_map import OWN_PREFIX, Link, Literal, Mention, TableRule
from effaced.datamap.model.rules import Strategy

_LINK = ("to", "from", "on", "where", "as")
_NUMBER = re.compile(r"-?[0-9]+")


def read_tables(reader: Reader, node: Node | None, subjects: Collection[str]) -> dict[str, TableRule]:
    """The rule of each table. `subjects` are the subject tables."""
    entries = reader.mapping(node, "tables")
    known = any(subject in entries for subject in subjects)
    return {
        name: _table(reader, name, key, value, subjects if known else None)
        for name, (key, value) in entries.items()
    }


def _table(
    reader: Reader, name: str, key: ScalarNode, node: Node, subjects: Collection[str] | None
) -> TableRule:
    """`subjects` is None if the map declares none of them, so that links can't be required yet."""
    if name.startswith(OWN_PREFIX):
        reader.report(key, f"{name}: effaced's own tables are left out of the map")
    fields = reader.fields(node, name, ("link", "mentions", "columns"), required=("columns",))
    is_subject = subjects is not None and name in subjects
    links = _links(reader, fields["link"], name) if "link" in fields else ()
    mentions = _mentions(reader, fields["mentions"], name) if "mentions" in fields else ()
    columns = read_columns(reader, fields["columns"], name) if "columns" in fields else {}
    if is_subject and "link" in fields:
        reader.report(fields["link"], f"{name}: the subject table has no link; the others link to it")
        links = ()
    may_lack_links = is_subject or subjects is None or not isinstance(node, MappingNode)
    if not may_lack_links and not fields.keys() & {"link", "mentions"}:
        reader.report(key, f"{name}: 'link' is missing; it says how the rows belong to a person")
    owned = is_subject or not mentions or "link" in fields
    table = TableRule(name, columns, links, mentions, owned, line_of(key))
    _require_decision(reader, table)
    return table


def _require_decision(reader: Reader, table: TableRule) -> None:
    """Rows of people need a column that says whether they stay; rows of nobody must have none."""
    name, columns = table.name, table.columns
    if table.owned and columns and not any(rule.decides_row for rule in columns.values()):
        reader.report(
            table.line,
            f"{name}: every column is not_personal, so it is unclear whether its rows stay; give one"
            " column delete, anonymise or retain, or list the table under not_personal",
        )
    for column, rule in columns.items():
        if not table.owned and rule.decides_row and rule.strategy is not Strategy.REVIEW:
            reader.report(
                rule.line,
                f"{name}.{column}: without a link no row of {name} is a person's; say not_personal here"
                " and what changes under mentions",
            )


def _links(reader: Reader, node: Node, table: str) -> tuple[Link, ...]:
    items = node.value if isinstance(node, SequenceNode) else [node]
    if not items:
        reader.report(node, f"{table}.link must name at least one table")
    links = (_link(reader, item, f"{table}.link", _LINK) for item in items)
    return tuple(link for link, _ in filter(None, links))


def _mentions(reader: Reader, node: Node, table: str) -> tuple[Mention, ...]:
    items = node.value if isinstance(node, SequenceNode) else [node]
    what = f"{table}.mentions"
    if not items:
        reader.report(node, f"{what} must name at least one table")
    found = []
    for item in items:
        read = _link(reader, item, what, ("to", "on", "where", "as", "columns"), required=("columns",))
        if read is None or "columns" not in read[1]:
            continue
        columns = read_columns(reader, read[1]["columns"], what)
        for name, rule in columns.items():
            if not rule.changes:
                reader.report(rule.line, f"{what}.{name} must be delete or anonymise; name only what changes")
        found.append(Mention(read[0], columns))
    return tuple(found)


def _link(
    reader: Reader, node: Node, what: str, allowed: Collection[str], required: Collection[str] = ()
) -> tuple[Link, dict[str, Node]] | None:
    fields = reader.fields(node, what, allowed, required=("on", *required))
    ends = [name for name in ("to", "from") if name in fields]
    if len(ends) != 1:
        if isinstance(node, MappingNode):
            missing = "needs either 'to' or 'from'" if "from" in allowed and ends else "'to' is missing"
            reader.report(node, f"{what}: {missing}")
        return None
    other_table = reader.text(fields[ends[0]], f"{what}.{ends[0]}")
    pairs = _pairs(reader, fields.get("on"), f"{what}.on")
    where = _where(reader, fields.get("where"), f"{what}.where")
    as_text = "as" in fields and reader.word(fields["as"], f"{what}.as", ["text"]) is not None
    if not other_table or not pairs:
        return None
    return Link(other_table, pairs, ends == ["from"], where, as_text, line_of(node)), fields


def _pairs(reader: Reader, node: Node | None, what: str) -> tuple[tuple[str, str], ...]:
    """`{customer_id: id}`: own column, and the column of the other table that it must equal."""
    if isinstance(node, MappingNode) and not node.value:
        reader.report(node, f"{what} must name at least one pair of columns")
    entries = reader.mapping(node, what).items()
    others = ((own, reader.text(other, f"{what}.{own}")) for own, (_, other) in entries)
    return tuple((own, other) for own, other in others if other)


def _where(reader: Reader, node: Node | None, what: str) -> tuple[tuple[str, tuple[Literal, ...]], ...]:
    """`{owner_type: Customer}`; a list of values means any of them, null the empty cell."""
    found = []
    for column, (_, value) in reader.mapping(node, what).items():
        items = value.value if isinstance(value, SequenceNode) else [value]
        scalars = [item for item in items if isinstance(item, ScalarNode)]
        if not items or len(scalars) < len(items):
            reader.report(value, f"{what}.{column} must be a value, or a list of values")
            continue
        found.append((column, tuple(_literal(item) for item in scalars)))
    return tuple(found)


def _literal(node: ScalarNode) -> Literal:
    if is_null(node):
        return None
    if node.tag == "tag:yaml.org,2002:int" and _NUMBER.fullmatch(node.value):
        return int(node.value)
    # `no` is Norway, and as good a word as any other.
    words: dict[str, Literal] = {"true": True, "false": False}
    plain = node.tag == "tag:yaml.org,2002:bool"
    return words.get(node.value, node.value) if plain else str(node.value)


def check_link_targets(reader: Reader, tables: dict[str, TableRule], not_personal: dict[str, int]) -> None:
    """Report links and mentions of tables that the map does not declare as having personal data."""
    for name, table in tables.items():
        mentions = [each.link for each in table.mentions]
        for what, link in [
            *(("link", each) for each in table.links),
            *(("mentions", each) for each in mentions),
        ]:
            end = f"{name}.{what}.{'from' if link.back else 'to'}"
            if link.to in not_personal:
                reader.report(link.line, f"{end}: '{link.to}' is listed as not_personal")
            elif link.to not in tables:
                near = did_you_mean(link.to, tables)
                reader.report(link.line, f"{end}: '{link.to}' is not under tables{near}")
