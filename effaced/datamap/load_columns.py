"""The `columns:` of a table in the data map: what happens to each."""

from __future__ import annotations

from datetime import date

from yaml.nodes import MappingNode, Node, ScalarNode

from effaced.datamap.model import ColumnRule, DatePart, Strategy, Surrogate
from effaced.datamap.reader import Reader, is_null, line_of, one_of

FIXED_TEXT = "erased"
_KEYS = (*Strategy, "text", "to")
_BASIS_LENGTH = 200


def read_columns(reader: Reader, node: Node, table: str) -> dict[str, ColumnRule]:
    """What the map says about each column, in a long form or a short one."""
    columns = {}
    for name, (key, value) in reader.mapping(node, f"{table}.columns").items():
        rule = _column(reader, value, f"{table}.{name}", line_of(key))
        # A column that is told wrongly counts as told: one mistake, one problem.
        columns[name] = rule or ColumnRule(Strategy.DELETE, line=line_of(key))
    if isinstance(node, MappingNode) and not node.value:
        reader.say(node, f"{table}.columns must name every column of the table")
    return columns


def _column(reader: Reader, node: Node, what: str, line: int) -> ColumnRule | None:
    if isinstance(node, ScalarNode):
        word = reader.word(node, what, Strategy)
        if word in (Strategy.DELETE, Strategy.NOT_PERSONAL):
            return ColumnRule(Strategy(word), line=line)
        if word is not None:
            missing = "basis" if word == Strategy.RETAIN else "surrogate"
            reader.say(node, f"{what}: {word} needs a {missing}: {_example(word)}")
        return None
    fields = reader.fields(node, what, _KEYS)
    if not isinstance(node, MappingNode):
        return None
    chosen = [Strategy(name) for name in fields if name in list(Strategy)]
    if len(chosen) != 1:
        reader.say(node, f"{what} needs exactly one of {one_of(Strategy)}")
        return None
    strategy, value = chosen[0], fields[chosen[0]]
    if strategy is Strategy.ANONYMISE:
        return _anonymise(reader, fields, what, line)
    for name in ("text", "to"):
        if name in fields:
            reader.say(fields[name], f"{what}: '{name}' goes with anonymise only")
    if strategy is Strategy.RETAIN:
        return _retain(reader, value, what, line)
    if reader.word(value, f"{what}.{strategy}", ["true"]) is None:
        return None
    return ColumnRule(strategy, line=line)


def _example(word: str) -> str:
    return '{retain: {basis: "tax law, ten years"}}' if word == Strategy.RETAIN else "{anonymise: null}"


def _anonymise(reader: Reader, fields: dict[str, Node], what: str, line: int) -> ColumnRule | None:
    node = fields[Strategy.ANONYMISE]
    if is_null(node) and isinstance(node, ScalarNode) and node.value:
        surrogate = Surrogate.NULL
    else:
        word = reader.word(node, f"{what}.anonymise", Surrogate)
        if word is None:
            return None
        surrogate = Surrogate(word)
    text, to = None, None
    if surrogate is Surrogate.FIXED_TEXT:
        text = _fixed_text(reader, fields.get("text"), f"{what}.text")
    elif "text" in fields:
        reader.say(fields["text"], f"{what}: 'text' goes with fixed_text only")
    if surrogate is Surrogate.TRUNCATED_DATE:
        part = reader.word(fields["to"], f"{what}.to", DatePart) if "to" in fields else DatePart.YEAR
        to = DatePart(part) if part else None
    elif "to" in fields:
        reader.say(fields["to"], f"{what}: 'to' goes with truncated_date only")
    return ColumnRule(Strategy.ANONYMISE, surrogate, text=text, to=to, line=line)


def _fixed_text(reader: Reader, node: Node | None, what: str) -> str:
    if node is None:
        return FIXED_TEXT
    if not isinstance(node, ScalarNode) or is_null(node) or "\0" in node.value:
        reader.say(node, f"{what} must be a text (for an empty cell, use anonymise: null)")
        return FIXED_TEXT
    return str(node.value)


def _retain(reader: Reader, node: Node, what: str, line: int) -> ColumnRule | None:
    """`retain: "tax law"` is short for `retain: {basis: "tax law"}`."""
    fields = (
        {"basis": node}
        if isinstance(node, ScalarNode)
        else reader.fields(node, f"{what}.retain", ("basis", "until"), required=("basis",))
    )
    basis = reader.text(fields["basis"], f"{what}.retain.basis") if "basis" in fields else None
    # The basis goes into the audit trail, which has no room for anything that may name a person.
    if basis is not None and (len(basis) > _BASIS_LENGTH or "@" in basis or not basis.isprintable()):
        reader.say(
            fields["basis"], f"{what}.retain.basis must be one line of at most 200 characters without '@'"
        )
    until = None
    if "until" in fields:
        text = reader.text(fields["until"], f"{what}.retain.until")
        try:
            until = date.fromisoformat(text) if text else None
        except ValueError:
            reader.say(fields["until"], f"{what}.retain.until must be a date such as 2031-12-31")
    return ColumnRule(Strategy.RETAIN, basis=basis, until=until, line=line) if basis else None
