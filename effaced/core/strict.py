"""Checking what a configuration file says, with complaints a person can act on."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from effaced.core.errors import ConfigurationError, Problem

M = TypeVar("M", bound=BaseModel)
LONGEST_COMPARED = 255
_MALFORMED = ("_parsing", "_invalid", "_inexact", "_mismatch", "_unicode", "_aware")
_CODES = {
    "missing": "missing",
    "extra_forbidden": "unknown_field",
    "enum": "not_allowed",
    "literal_error": "not_allowed",
    "int_from_float": "wrong_type",
    "finite_number": "wrong_type",
    "greater_than": "too_small",
    "greater_than_equal": "too_small",
    "less_than": "too_large",
    "less_than_equal": "too_large",
    "string_too_short": "too_short",
    "too_short": "too_short",
    "string_too_long": "too_long",
    "too_long": "too_long",
}


class Strict(BaseModel):
    """The base of configuration models: unknown keys are refused, values stay out of errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, coerce_numbers_to_str=True
    )


def validate(model: type[M], config: Mapping[str, Any], *, beside: Collection[str] = ()) -> M:
    """Make the model, or raise a ConfigurationError with every problem; `where` is the dotted key.

    `beside` are keys of the same block that others read: known, but not the model's.
    """
    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        problems = problems_of(error, model, beside=beside)
    raise ConfigurationError("The configuration is wrong.", problems=problems)


def problems_of(
    error: ValidationError, model: type[BaseModel] | None = None, *, beside: Collection[str] = ()
) -> list[Problem]:
    """pydantic's complaints as problems, without the values that caused them."""
    problems = []
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        place = each["loc"]
        if each["type"] == "extra_forbidden":
            known = _known_keys(model, place[:-1], beside) if model else []
            message = f"unknown key{suggest(str(place[-1]), known)}"
        elif each["type"] == "missing":
            message = "is required"
        else:
            message = each["msg"].removeprefix("Value error, ")
        problems.append(Problem(".".join(str(part) for part in place), message, code=code_of(each["type"])))
    return problems


def code_of(kind: str) -> str:
    """The code, which never changes its meaning, of what pydantic calls so."""
    if kind in _CODES:
        return _CODES[kind]
    if kind.endswith("_type"):
        return "wrong_type"
    return "malformed" if kind.endswith(_MALFORMED) else "invalid"


def suggest(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the closest known one, or all of them."""
    names = sorted(known)
    # Comparing takes the product of both lengths, and no name is anywhere near as long.
    closest = difflib.get_close_matches(word, names, n=1) if len(word) <= LONGEST_COMPARED else []
    if closest:
        return f"; did you mean '{closest[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""


def _known_keys(model: type[BaseModel], place: tuple[int | str, ...], beside: Collection[str]) -> list[str]:
    at: type[BaseModel] | None = model
    for part in place:
        fields = at.model_fields if at else {}
        field = next((f for name, f in fields.items() if part in (name, f.alias)), None)
        at = _model_in(field.annotation) if field else None
    if at is None:
        return []
    names = [field.alias or name for name, field in at.model_fields.items()]
    return names if place else [*names, *beside]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None
