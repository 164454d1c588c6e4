"""Read a data map from its YAML file. What the database says about it is for `check`."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from string import Formatter

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from effaced.datamap.load_columns import read_columns
from effaced.datamap.model import (
    OWN_PREFIX,
    DataMap,
    IdentifierRule,
    Link,
    RectifyRule,
    RefRule,
    Strategy,
    TableRule,
)
from effaced.datamap.reader import Reader, closest, line_of
from effaced.errors import ConfigurationError
from effaced.yamltree import read_tree

_TOP = ("version", "subject", "identifiers", "refs", "tables", "not_personal", "rectify")
_KIND = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


def load_map(path: str | PathLike[str]) -> DataMap:
    """The map in that file. Raises ConfigurationError with every problem, each with file and line."""
    reader = Reader(str(path))
    root = read_tree(Path(path))
    data_map = _map(reader, root) if root is not None else None
    if root is None:
        reader.say(1, "the data map is empty; it needs version, subject and tables")
    problems = reader.problems()
    if problems or data_map is None:
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ConfigurationError(f"The data map can't be used; it has {count}:", problems=problems)
    return data_map


def _map(reader: Reader, root: Node) -> DataMap | None:
    top = reader.fields(root, "the data map", _TOP, required=("version", "subject", "tables"))
    if "version" in top:
        reader.word(top["version"], "version", ["1"])
    subject, key = _subject(reader, top["subject"]) if "subject" in top else (None, ())
    identifiers = _identifiers(reader, top["identifiers"]) if "identifiers" in top else ()
    refs = _refs(reader, top["refs"]) if "refs" in top else ()
    tables = _tables(reader, top["tables"], subject) if "tables" in top else {}
    not_personal = _not_personal(reader, top["not_personal"], tables) if "not_personal" in top else {}
    rectify = _rectify(reader, top["rectify"], tables) if "rectify" in top else {}
    if "tables" in top:
        _links_lead_somewhere(reader, tables, not_personal)
        if subject is not None and subject not in tables:
            reader.say(top["subject"], f"subject: '{subject}' is not under tables{closest(subject, tables)}")
    if subject is None or "tables" not in top:
        return None
    lines = {key.value: line_of(key) for key, _ in root.value}
    return DataMap(
        path=reader.path,
        subject=subject,
        key=key,
        identifiers=identifiers,
        refs=refs,
        tables=tables,
        not_personal=not_personal,
        rectify=rectify,
        subject_line=lines["subject"],
        tables_line=lines["tables"],
    )


def _subject(reader: Reader, node: Node) -> tuple[str | None, tuple[str, ...]]:
    fields = reader.fields(node, "subject", ("table", "key"), required=("table", "key"))
    table = reader.text(fields["table"], "subject.table") if "table" in fields else None
    key: tuple[str, ...] = ()
    if isinstance(fields.get("key"), SequenceNode):
        key = tuple(column for column, _ in reader.texts(fields["key"], "subject.key"))
        if not key or len(set(key)) < len(key):
            reader.say(fields["key"], "subject.key must name at least one column, and each only once")
    elif "key" in fields:
        column = reader.text(fields["key"], "subject.key")
        key = (column,) if column else ()
    return table, key


def _identifiers(reader: Reader, node: Node) -> tuple[IdentifierRule, ...]:
    rules = []
    for kind, (key, value) in reader.mapping(node, "identifiers").items():
        _kind(reader, key, "identifiers")
        column = reader.text(value, f"identifiers.{kind}")
        if column:
            rules.append(IdentifierRule(kind, column, line_of(key)))
    return tuple(rules)


def _refs(reader: Reader, node: Node) -> tuple[RefRule, ...]:
    rules = []
    for kind, (key, value) in reader.mapping(node, "refs").items():
        _kind(reader, key, "refs")
        parts = _ref_parts(reader, value, f"refs.{kind}")
        if parts:
            rules.append(RefRule(kind, parts, line_of(key)))
    return tuple(rules)


def _kind(reader: Reader, key: ScalarNode, what: str) -> None:
    if not _KIND.fullmatch(key.value):
        reader.say(key, f"{what}: '{key.value}' must be a word of letters, digits, '_', '.' and '-'")


def _ref_parts(reader: Reader, node: Node, what: str) -> tuple[tuple[str, str | None], ...]:
    if isinstance(node, ScalarNode):
        column = reader.text(node, what)
        return (("", column),) if column else ()
    fields = reader.fields(node, what, ("column", "template"))
    if not isinstance(node, MappingNode):
        return ()
    if len(fields) != 1:
        reader.say(node, f"{what} needs either column or template")
        return ()
    (name, value), *_ = fields.items()
    text = reader.text(value, f"{what}.{name}")
    if text is None:
        return ()
    return (("", text),) if name == "column" else _template(reader, value, text, f"{what}.template")


def _template(reader: Reader, node: Node, text: str, what: str) -> tuple[tuple[str, str | None], ...]:
    try:
        parts = tuple(Formatter().parse(text))
    except ValueError:
        parts = ()
    plain = all(not spec and not conversion for _, _, spec, conversion in parts)
    columns = [name for _, name, _, _ in parts if name is not None]
    if not plain or not columns or not all(columns):
        reader.say(node, f"{what} must name columns in braces, such as 'customers/{{id}}/', and nothing else")
        return ()
    return tuple((literal, name) for literal, name, _, _ in parts)


def _tables(reader: Reader, node: Node, subject: str | None) -> dict[str, TableRule]:
    tables = {}
    entries = reader.mapping(node, "tables")
    for name, (key, value) in entries.items():
        if name.startswith(OWN_PREFIX):
            reader.say(key, f"{name}: effaced's own tables are left out of the map")
        fields = reader.fields(value, name, ("link", "columns"), required=("columns",))
        links = _links(reader, fields["link"], name) if "link" in fields else ()
        if name == subject and "link" in fields:
            reader.say(fields["link"], f"{name}: the subject table has no link; the others link to it")
            links = ()
        elif (
            subject in entries and subject != name and "link" not in fields and isinstance(value, MappingNode)
        ):
            reader.say(key, f"{name}: 'link' is missing; it says how the rows belong to a person")
        columns = read_columns(reader, fields["columns"], name) if "columns" in fields else {}
        if columns and all(rule.strategy is Strategy.NOT_PERSONAL for rule in columns.values()):
            reader.say(
                key,
                f"{name}: every column is not_personal, so it is unclear whether its rows stay; give one"
                " column delete, anonymise or retain, or list the table under not_personal",
            )
        tables[name] = TableRule(name, columns, links, line_of(key))
    return tables


def _links(reader: Reader, node: Node, table: str) -> tuple[Link, ...]:
    items = node.value if isinstance(node, SequenceNode) else [node]
    if not items:
        reader.say(node, f"{table}.link must name at least one table")
    links = (_link(reader, item, f"{table}.link") for item in items)
    return tuple(link for link in links if link is not None)


def _link(reader: Reader, node: Node, what: str) -> Link | None:
    fields = reader.fields(node, what, ("to", "on"), required=("to", "on"))
    to = reader.text(fields["to"], f"{what}.to") if "to" in fields else None
    pairs = []
    for own, (_, other) in (reader.mapping(fields["on"], f"{what}.on") if "on" in fields else {}).items():
        target = reader.text(other, f"{what}.on.{own}")
        if target:
            pairs.append((own, target))
    if isinstance(fields.get("on"), MappingNode) and not fields["on"].value:
        reader.say(fields["on"], f"{what}.on must name at least one pair of columns")
    return Link(to, tuple(pairs), line_of(node)) if to and pairs else None


def _not_personal(reader: Reader, node: Node, tables: dict[str, TableRule]) -> dict[str, int]:
    listed: dict[str, int] = {}
    for name, item in reader.texts(node, "not_personal"):
        if name in tables:
            reader.say(item, f"not_personal: '{name}' is also under tables")
        elif name in listed:
            reader.say(item, f"not_personal: '{name}' is there twice")
        elif name.startswith(OWN_PREFIX):
            reader.say(item, f"not_personal: '{name}': effaced's own tables are left out of the map")
        listed[name] = line_of(item)
    return listed


def _rectify(reader: Reader, node: Node, tables: dict[str, TableRule]) -> dict[str, RectifyRule]:
    """`email: [customers.email, letters.email]`; one column may stand without the brackets."""
    rules: dict[str, RectifyRule] = {}
    taken: dict[tuple[str, str], str] = {}
    for category, (key, value) in reader.mapping(node, "rectify").items():
        _kind(reader, key, "rectify")
        if "." in category:
            reader.say(key, f"rectify: '{category}' must have no dot; names with one are columns")
        what = f"rectify.{category}"
        texts = (
            list(reader.texts(value, what))
            if isinstance(value, SequenceNode)
            else [(text, value) for text in [reader.text(value, what)] if text]
        )
        columns = []
        for text, item in texts:
            table, _, column = text.rpartition(".")
            rule = tables.get(table)
            if rule is None or column not in rule.columns:
                known = [f"{name}.{each}" for name, known in tables.items() for each in known.columns]
                reader.say(item, f"{what}: '{text}' is no column of the map{closest(text, known)}")
            elif (table, column) in taken:
                reader.say(item, f"{what}: '{text}' is under rectify.{taken[table, column]} already")
            else:
                taken[table, column] = category
                columns.append((table, column))
        if isinstance(value, SequenceNode) and not value.value:
            reader.say(value, f"{what} must name at least one column")
        if columns:
            rules[category] = RectifyRule(category, tuple(columns), line_of(key))
    return rules


def _links_lead_somewhere(reader: Reader, tables: dict[str, TableRule], not_personal: dict[str, int]) -> None:
    for name, table in tables.items():
        for link in table.links:
            if link.to in not_personal:
                reader.say(link.line, f"{name}.link.to: '{link.to}' is listed as not_personal")
            elif link.to not in tables:
                near = closest(link.to, tables)
                reader.say(link.line, f"{name}.link.to: '{link.to}' is not under tables{near}")
