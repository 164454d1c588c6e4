"""The `columns:` of a table in the data map: what happens to each."""

from __future__ import annotations

from yaml.nodes import MappingNode, Node, ScalarNode

from effaced.datamap.load.content import OPTIONS, read_anonymise, read_json, read_scrub
from effaced.datamap.load.reader import Reader, line_of, one_of
from effaced.datamap.model.data_map import ColumnRule, Strategy
from effaced.datamap.model.last_day import EXPECTED, Until, parse_until

_KEYS = (*Strategy, *OPTIONS)
_ALONE = (Strategy.DELETE, Strategy.NOT_PERSONAL, Strategy.DERIVED)
_EXAMPLES = {
    Strategy.ANONYMISE: "a surrogate: {anonymise: null}",
    Strategy.JSON: 'paths: {json: {"$.name": delete}}',
    Strategy.SCRUB: "the identifiers to look for: {scrub: all}",
    Strategy.RETAIN: 'a basis: {retain: {basis: "tax law, ten years"}}',
    Strategy.REVIEW: 'a reason: {review: "looks like a name"}',
}
_BASIS_LENGTH = 200


def read_columns(reader: Reader, node: Node, table: str) -> dict[str, ColumnRule]:
    """The rule of each column, written in its long or short form."""
    columns = {}
    for name, (key, value) in reader.mapping(node, f"{table}.columns").items():
        rule = _column(reader, value, f"{table}.{name}", line_of(key))
        # A column with a mistake counts as declared: one mistake, one problem.
        columns[name] = rule or ColumnRule(Strategy.DELETE, line=line_of(key))
    if isinstance(node, MappingNode) and not node.value:
        reader.report(node, f"{table}.columns must name every column of the table")
    return columns


def _column(reader: Reader, node: Node, what: str, line: int) -> ColumnRule | None:
    if isinstance(node, ScalarNode):
        word = reader.word(node, what, Strategy)
        if word in _ALONE:
            return ColumnRule(Strategy(word), line=line)
        if word is not None:
            reader.report(node, f"{what}: {word} needs {_EXAMPLES[Strategy(word)]}")
        return None
    fields = reader.fields(node, what, _KEYS)
    if not isinstance(node, MappingNode):
        return None
    chosen = [Strategy(name) for name in fields if name in list(Strategy)]
    if len(chosen) != 1:
        reader.report(node, f"{what} needs exactly one of {one_of(Strategy)}")
        return None
    strategy, value = chosen[0], fields[chosen[0]]
    if strategy is Strategy.ANONYMISE:
        return read_anonymise(reader, fields, what, line)
    for name in OPTIONS:
        if name in fields:
            reader.report(fields[name], f"{what}: '{name}' goes with anonymise only")
    return _rule(reader, strategy, value, what, line)


def _rule(reader: Reader, strategy: Strategy, node: Node, what: str, line: int) -> ColumnRule | None:
    match strategy:
        case Strategy.RETAIN:
            return _retain(reader, node, what, line)
        case Strategy.JSON:
            return read_json(reader, node, what, line, _column)
        case Strategy.SCRUB:
            return read_scrub(reader, node, what, line)
        case Strategy.REVIEW:
            reason = reader.text(node, f"{what}.review")
            return ColumnRule(strategy, reason=reason, line=line) if reason else None
        case _:
            right = reader.word(node, f"{what}.{strategy}", ["true"])
            return ColumnRule(strategy, line=line) if right else None


def _retain(reader: Reader, node: Node, what: str, line: int) -> ColumnRule | None:
    """`retain: "tax law"` is short for `retain: {basis: "tax law"}`."""
    fields = (
        {"basis": node}
        if isinstance(node, ScalarNode)
        else reader.fields(node, f"{what}.retain", ("basis", "until", "then"), required=("basis",))
    )
    basis = reader.text(fields["basis"], f"{what}.retain.basis") if "basis" in fields else None
    # The basis goes into the audit trail, which has no room for anything that may name a person.
    if basis is not None and (len(basis) > _BASIS_LENGTH or "@" in basis or not basis.isprintable()):
        reader.report(
            fields["basis"], f"{what}.retain.basis must be one line of at most 200 characters without '@'"
        )
    until = _until(reader, fields["until"], f"{what}.retain.until") if "until" in fields else None
    then = ColumnRule(Strategy.DELETE, line=line) if until else None
    if "then" in fields:
        then = _then(reader, fields["then"], f"{what}.retain.then", line)
        if "until" not in fields:
            reader.report(fields["then"], f"{what}.retain: 'then' goes with 'until' only")
    return ColumnRule(Strategy.RETAIN, basis=basis, until=until, then=then, line=line) if basis else None


def _until(reader: Reader, node: Node, what: str) -> Until | None:
    text = reader.text(node, what)
    until = parse_until(text) if text else None
    if text and until is None:
        reader.report(node, f"{what} {EXPECTED}")
    return until


def _then(reader: Reader, node: Node, what: str, line: int) -> ColumnRule | None:
    rule = _column(reader, node, what, line)
    if rule is None:
        return None
    # By then nobody knows any more what to look for in a text.
    if not rule.changes or any(each.strategy is Strategy.SCRUB for each in rule.leaf_rules):
        reader.report(node, f"{what} must be delete, anonymise or json, and can't scrub")
        return None
    return rule
