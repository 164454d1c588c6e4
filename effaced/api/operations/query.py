"""What stands after the question mark, checked; a wrong argument is refused by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from werkzeug.datastructures import MultiDict

from effaced.api.models import Query
from effaced.api.operations.validation import MOST_PROBLEMS, problems_of, shown
from effaced.core.errors import Problem, Refused

Q = TypeVar("Q", bound=Query)
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
# pydantic would take "yes", "1_000" and " 5 " as well: what the document does not say, nobody should rely on.
_READ: dict[type, Callable[[str], object]] = {
    int: lambda text: int(text) if _WHOLE.fullmatch(text) else None,
    float: lambda text: float(text) if _NUMBER.fullmatch(text) else None,
    bool: lambda text: {"true": True, "false": False}.get(text),
}
_MESSAGES = {int: "must be a whole number", float: "must be a number", bool: "must be true or false"}


def read_query(model: type[Q], given: MultiDict[str, str]) -> Q:
    """The arguments. Refuses with 422, and names every wrong or unknown one."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in list(given)[: len(model.model_fields) + MOST_PROBLEMS]:
        texts = given.getlist(name)
        kind, several = _kinds(model).get(name, (str, False))
        if len(texts) > 1 and not several:
            problems.append(Problem(shown(name), "is there more than once", code="repeated"))
        elif kind in _READ and None in (read := [_READ[kind](text) for text in texts]):
            problems.append(Problem(name, _MESSAGES[kind], code="wrong_type"))
        else:
            converted: list[Any] = read if kind in _READ else texts
            values[name] = converted if several else converted[0]
    wrong = {problem.where for problem in problems}
    try:
        query = model.model_validate(values)
    except ValidationError as error:
        known = ", ".join(_kinds(model)) or "there are none"
        found = problems_of(error, unknown=f"is not known; {known}")
        problems += [each for each in _by_argument(found) if each.where not in wrong]
    if problems:
        raise Refused("The query is invalid.", problems=problems[:MOST_PROBLEMS])
    return query


def _by_argument(found: list[Problem]) -> list[Problem]:
    """One problem for each argument: of one that may be a word of several lists, each list has complained."""
    arguments: dict[str, list[Problem]] = {}
    for each in found:
        arguments.setdefault(each.where.partition(".")[0], []).append(each)
    return [
        Problem(name, " or ".join(dict.fromkeys(each.message for each in problems)), code=problems[0].code)
        for name, problems in arguments.items()
    ]


@cache
def _kinds(model: type[Query]) -> dict[str, tuple[type, bool]]:
    """For each argument, as it is sent, its plain type and whether it may be there several times."""
    return {field.alias or name: _kind(field.annotation) for name, field in model.model_fields.items()}


def _kind(annotation: Any) -> tuple[type, bool]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(get_args(annotation)[0])
    if origin in (Union, UnionType):
        kinds = {_kind(each) for each in get_args(annotation) if each is not type(None)}
        # Of several kinds, such as two enums, the text itself says which one is meant.
        return kinds.pop() if len(kinds) == 1 else (str, False)
    if origin in (list, tuple):
        return _kind(get_args(annotation)[0])[0], True
    return annotation if isinstance(annotation, type) else str, False
