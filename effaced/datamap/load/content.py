"""Read what the map says a cell becomes: a surrogate, an edited JSON document, a text with names removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from effaced.datamap.load.reader import Reader, is_null, line_of, one_of
from effaced.datamap.model.data_map import ColumnRule, DatePart, JsonPath, Strategy, Surrogate
from effaced.datamap.model.json_paths import overlap, parse_path

FIXED_TEXT = "erased"
_GOES_WITH = {"text": Surrogate.FIXED_TEXT, "value": Surrogate.FIXED, "to": Surrogate.TRUNCATED_DATE}
OPTIONS = tuple(_GOES_WITH)
ALL = "all"
_AS_WRITTEN = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool")
_NOT_IN_JSON = (Surrogate.TRUNCATED_DATE, Surrogate.RANDOM_NUMBER)
ReadColumn = Callable[[Reader, Node, str, int], ColumnRule | None]


def read_anonymise(reader: Reader, fields: dict[str, Node], what: str, line: int) -> ColumnRule | None:
    """`{anonymise: surrogate}`, with the option of that surrogate."""
    node = fields[Strategy.ANONYMISE]
    if is_null(node) and isinstance(node, ScalarNode) and node.value:
        surrogate = Surrogate.NULL
    else:
        word = reader.word(node, f"{what}.anonymise", Surrogate)
        if word is None:
            return None
        surrogate = Surrogate(word)
    for name, goes_with in _GOES_WITH.items():
        if name in fields and surrogate is not goes_with:
            reader.report(fields[name], f"{what}: '{name}' goes with {goes_with} only")
    rule = ColumnRule(Strategy.ANONYMISE, surrogate, line=line)
    match surrogate:
        case Surrogate.FIXED_TEXT:
            return replace(rule, text=_fixed_text(reader, fields.get("text"), f"{what}.text"))
        case Surrogate.FIXED:
            return replace(rule, value=_fixed(reader, node, fields.get("value"), f"{what}.value"))
        case Surrogate.TRUNCATED_DATE:
            part = reader.word(fields["to"], f"{what}.to", DatePart) if "to" in fields else DatePart.YEAR
            return replace(rule, to=DatePart(part) if part else None)
        case _:
            return rule


def _fixed_text(reader: Reader, node: Node | None, what: str) -> str:
    if node is None:
        return FIXED_TEXT
    if not isinstance(node, ScalarNode) or is_null(node) or "\0" in node.value:
        reader.report(node, f"{what} must be a text (for an empty cell, use anonymise: null)")
        return FIXED_TEXT
    return str(node.value)


def _fixed(reader: Reader, at: Node, node: Node | None, what: str) -> str | None:
    if not isinstance(node, ScalarNode) or is_null(node) or "\0" in node.value:
        problem = "must be a number, a date, a word or true or false (for an empty cell, use anonymise: null)"
        reader.report(node or at, f"{what} {problem}")
        return None
    return str(node.value)


def read_json(reader: Reader, node: Node, what: str, line: int, read: ReadColumn) -> ColumnRule | None:
    """`{json: {path: rule}}`; `read` reads a path's rule as it reads a column's."""
    paths: dict[JsonPath, ColumnRule] = {}
    for text, (key, value) in reader.mapping(node, f"{what}.json").items():
        place = f"{what}.json {text}"
        path = parse_path(text)
        if path is None:
            reader.report(key, f'{place}: must be a path such as $.name, $.list[*].name or $["a name"]')
            continue
        if (other := next((each for each in paths if overlap(each, path)), None)) is not None:
            reader.report(key, f"{place}: leads to the same place as the path in line {paths[other].line}")
            continue
        rule = read(reader, value, place, line_of(key))
        # A path with a mistake counts as declared: one mistake, one problem.
        paths[path] = _for_path(reader, value, rule, path, place) or ColumnRule(
            Strategy.DELETE, line=line_of(key)
        )
    if isinstance(node, MappingNode) and not node.value:
        reader.report(node, f"{what}.json must name at least one path")
    return ColumnRule(Strategy.JSON, paths=tuple(paths.items()), line=line) if paths else None


def _for_path(
    reader: Reader, node: Node, rule: ColumnRule | None, path: JsonPath, what: str
) -> ColumnRule | None:
    """The rule if it can be applied to a path of a document; None after reporting why not."""
    if rule is None:
        return None
    if rule.strategy not in (Strategy.DELETE, Strategy.ANONYMISE, Strategy.SCRUB):
        allowed = one_of((Strategy.DELETE, Strategy.ANONYMISE, Strategy.SCRUB))
        reader.report(node, f"{what} must be {allowed}; what no path names stays")
    elif rule.surrogate in _NOT_IN_JSON:
        allowed = one_of(each for each in Surrogate if each not in _NOT_IN_JSON)
        reader.report(node, f"{what}: {rule.surrogate} is for columns; use {allowed}")
    elif rule.strategy is Strategy.DELETE and isinstance(path[-1], int):
        # The next element would move up, and go the next time.
        reader.report(node, f"{what}: a numbered element can't be deleted; use anonymise: null, or [*]")
    elif rule.surrogate is Surrogate.FIXED and isinstance(node, MappingNode):
        value = next((each for key, each in node.value if key.value == "value"), None)
        return replace(rule, value=_as_json(value)) if isinstance(value, ScalarNode) else rule
    else:
        return rule
    return None


def _as_json(node: ScalarNode) -> str:
    value = yaml.safe_load(node.value) if node.tag in _AS_WRITTEN else node.value
    return json.dumps(value, ensure_ascii=False)


def read_scrub(reader: Reader, node: Node, what: str, line: int) -> ColumnRule | None:
    """`{scrub: all}` or `{scrub: [email, name]}`."""
    if isinstance(node, ScalarNode):
        if node.value != ALL:
            reader.report(node, f"{what}.scrub must be all, or a list such as [email, name]")
            return None
        return ColumnRule(Strategy.SCRUB, line=line)
    names = [name for name, _ in reader.texts(node, f"{what}.scrub")]
    if isinstance(node, SequenceNode) and not node.value:
        reader.report(node, f"{what}.scrub must name at least one identifier")
    return ColumnRule(Strategy.SCRUB, names=tuple(dict.fromkeys(names)), line=line) if names else None
