"""Read a data map from its YAML file. What the database says about it is for `check`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from os import PathLike
from pathlib import Path
from string import Formatter

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from effaced.core.errors import ConfigurationError
from effaced.core.yaml.tree import read_tree
from effaced.datamap.load.reader import Reader, did_you_mean, line_of
from effaced.datamap.load.tables import check_link_targets, read_tables
from effaced.datamap.model.data_map import (
    OWN_PREFIX,
    DataMap,
    IdentifierRule,
    RectifyRule,
    RefRule,
    SubjectRule,
    TableRule,
)

_TOP = (
    "version", "schemas", "subject", "subjects", "identifiers", "refs", "tables", "not_personal", "review",
    "rectify",
)  # fmt: skip
_PERSON = ("table", "key")
_PEOPLE = ("table", "key", "identifiers", "refs")
_KIND = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


def load_map(path: str | PathLike[str]) -> DataMap:
    """Read the map. Raises ConfigurationError with every problem, each with file and line."""
    reader = Reader(str(path))
    root = read_tree(Path(path))
    data_map = _map(reader, root) if root is not None else None
    if root is None:
        reader.report(1, "the data map is empty; it needs version, subject and tables")
    problems = reader.problems()
    if problems or data_map is None:
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ConfigurationError(f"The data map can't be used; it has {count}:", problems=problems)
    return data_map


def _map(reader: Reader, root: Node) -> DataMap | None:
    top = reader.fields(root, "the data map", _TOP, required=("version", "tables"))
    if "version" in top:
        reader.word(top["version"], "version", ["1"])
    people = _people(reader, top, root)
    tables = read_tables(reader, top.get("tables"), [each.table for each in people])
    not_personal = _not_personal(reader, top.get("not_personal"), tables)
    rectify = _rectify(reader, top.get("rectify"), tables)
    undecided = _undecided(reader, top.get("review"), {*tables, *not_personal})
    schemas = _schemas(reader, top.get("schemas"))
    if "tables" not in top:
        return None
    check_link_targets(reader, tables, not_personal)
    for each in people:
        if each.table not in tables:
            near = did_you_mean(each.table, tables)
            reader.report(each.line, f"subject: '{each.table}' is not under tables{near}")
    if not people:
        return None
    line = _line_of_key(root, "tables")
    return DataMap(reader.path, people, tables, not_personal, rectify, schemas, line, undecided)


def _schemas(reader: Reader, node: Node | None) -> tuple[str, ...]:
    schemas = tuple(name for name, _ in reader.texts(node, "schemas"))
    if node is not None and not schemas:
        reader.report(node, "schemas must name at least one schema")
    return schemas


def _people(reader: Reader, top: dict[str, Node], root: Node) -> tuple[SubjectRule, ...]:
    """`subject:` for one kind of people, `subjects:` for several, each with its own identifiers."""
    if ("subject" in top) == ("subjects" in top):
        if isinstance(root, MappingNode):
            reader.report(root, "the data map: needs either 'subject' or 'subjects'")
        return ()
    if "subjects" in top:
        return _kinds_of_people(reader, top)
    fields = reader.fields(top["subject"], "subject", _PERSON, required=_PERSON)
    fields |= {name: top[name] for name in ("identifiers", "refs") if name in top}
    rule = _subject(reader, None, fields, "subject", _line_of_key(root, "subject"))
    return (rule,) if rule else ()


def _kinds_of_people(reader: Reader, top: dict[str, Node]) -> tuple[SubjectRule, ...]:
    """`subjects:`, by name."""
    for name in ("identifiers", "refs"):
        if name in top:
            reader.report(top[name], f"{name}: with 'subjects', each of them has its own")
    kinds = reader.mapping(top["subjects"], "subjects")
    if isinstance(top["subjects"], MappingNode) and not top["subjects"].value:
        reader.report(top["subjects"], "subjects must name at least one kind of people")
    by_table: dict[str, SubjectRule] = {}
    for name, (key, node) in kinds.items():
        _kind(reader, key, "subjects")
        what = f"subjects.{name}"
        fields = reader.fields(node, what, _PEOPLE, required=_PERSON)
        rule = _subject(reader, name, fields, what, line_of(key))
        if rule and rule.table in by_table:
            reader.report(key, f"{what}.table: '{rule.table}' has another subject already")
        elif rule:
            by_table[rule.table] = rule
    return tuple(by_table.values())


def _line_of_key(root: Node, name: str) -> int:
    return next(line_of(key) for key, _ in root.value if key.value == name)


def _subject(
    reader: Reader, name: str | None, fields: dict[str, Node], what: str, line: int
) -> SubjectRule | None:
    table = reader.text(fields["table"], f"{what}.table") if "table" in fields else None
    key: tuple[str, ...] = ()
    if isinstance(fields.get("key"), SequenceNode):
        key = tuple(column for column, _ in reader.texts(fields["key"], f"{what}.key"))
        if not key or len(set(key)) < len(key):
            reader.report(fields["key"], f"{what}.key must name at least one column, and each only once")
    elif "key" in fields:
        column = reader.text(fields["key"], f"{what}.key")
        key = (column,) if column else ()
    identifiers = _identifiers(reader, fields.get("identifiers"))
    refs = _refs(reader, fields.get("refs"))
    return SubjectRule(name or table, table, key, identifiers, refs, line) if table else None


def _identifiers(reader: Reader, node: Node | None) -> tuple[IdentifierRule, ...]:
    rules = []
    for kind, (key, value) in reader.mapping(node, "identifiers").items():
        _kind(reader, key, "identifiers")
        column = reader.text(value, f"identifiers.{kind}")
        if column:
            rules.append(IdentifierRule(kind, column, line_of(key)))
    return tuple(rules)


def _refs(reader: Reader, node: Node | None) -> tuple[RefRule, ...]:
    rules = []
    for kind, (key, value) in reader.mapping(node, "refs").items():
        _kind(reader, key, "refs")
        parts = _ref_parts(reader, value, f"refs.{kind}")
        if parts:
            rules.append(RefRule(kind, parts, line_of(key)))
    return tuple(rules)


def _kind(reader: Reader, key: ScalarNode, what: str) -> None:
    if not _KIND.fullmatch(key.value):
        reader.report(key, f"{what}: '{key.value}' must be a word of letters, digits, '_', '.' and '-'")


def _ref_parts(reader: Reader, node: Node, what: str) -> tuple[tuple[str, str | None], ...]:
    if isinstance(node, ScalarNode):
        column = reader.text(node, what)
        return (("", column),) if column else ()
    fields = reader.fields(node, what, ("column", "template"))
    if not isinstance(node, MappingNode):
        return ()
    if len(fields) != 1:
        reader.report(node, f"{what} needs either column or template")
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
        reader.report(
            node, f"{what} must name columns in braces, such as 'customers/{{id}}/', and nothing else"
        )
        return ()
    return tuple((literal, name) for literal, name, _, _ in parts)


def _not_personal(reader: Reader, node: Node | None, tables: dict[str, TableRule]) -> dict[str, int]:
    listed: dict[str, int] = {}
    for name, item in reader.texts(node, "not_personal"):
        if name in tables:
            reader.report(item, f"not_personal: '{name}' is also under tables")
        elif name in listed:
            reader.report(item, f"not_personal: '{name}' is there twice")
        elif name.startswith(OWN_PREFIX):
            reader.report(item, f"not_personal: '{name}': effaced's own tables are left out of the map")
        listed[name] = line_of(item)
    return listed


def _undecided(reader: Reader, node: Node | None, declared: Collection[str]) -> dict[str, tuple[int, str]]:
    """Tables still to be decided about, each with its line and the reason."""
    found = {}
    for name, (key, value) in reader.mapping(node, "review").items():
        reason = reader.text(value, f"review.{name}")
        if name in declared:
            reader.report(key, f"review: '{name}' is also under tables or not_personal")
        elif reason:
            found[name] = (line_of(key), reason)
    return found


def _rectify(reader: Reader, node: Node | None, tables: dict[str, TableRule]) -> dict[str, RectifyRule]:
    """`email: [customers.email, letters.email]`; a single column needs no brackets."""
    rules: dict[str, RectifyRule] = {}
    taken: dict[tuple[str, str], str] = {}
    columns_by_name = _columns_by_name(tables)
    for category, (key, value) in reader.mapping(node, "rectify").items():
        _kind(reader, key, "rectify")
        if "." in category:
            reader.report(key, f"rectify: '{category}' must have no dot; names with one are columns")
        what = f"rectify.{category}"
        columns: list[tuple[str, str]] = []
        for name, item in _one_or_more(reader, value, what):
            meant = columns_by_name.get(name, [])
            if len(meant) != 1:
                problem = "can be two columns of" if meant else "is no column of"
                near = "" if meant else did_you_mean(name, columns_by_name)
                reader.report(item, f"{what}: '{name}' {problem} the map{near}")
            elif meant[0] in taken:
                reader.report(item, f"{what}: '{name}' is under rectify.{taken[meant[0]]} already")
            else:
                taken[meant[0]] = category
                columns += meant
        if columns:
            rules[category] = RectifyRule(category, tuple(columns), line_of(key))
    return rules


def _columns_by_name(tables: dict[str, TableRule]) -> dict[str, list[tuple[str, str]]]:
    """`table.column` -> the columns that this can mean, since both names may contain dots."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, table in tables.items():
        for column in table.columns:
            found.setdefault(f"{name}.{column}", []).append((name, column))
    return found


def _one_or_more(reader: Reader, node: Node, what: str) -> Iterator[tuple[str, Node]]:
    """The items of a list, or a single text."""
    if not isinstance(node, SequenceNode):
        if text := reader.text(node, what):
            yield text, node
        return
    if not node.value:
        reader.report(node, f"{what} must name at least one column")
    yield from reader.texts(node, what)
