"""pydantic's complaints in our words. Sent values are never repeated: they may be personal."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from effaced.core.errors import Problem
from effaced.core.strict import code_of

# More mistakes than anybody reads.
MOST_PROBLEMS = 50
# Unknown fields are named in the answer; only what looks like a name is.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,126}|[0-9]{1,9}")
_UNKNOWN = "extra_forbidden"
_WORDS = {
    "missing": "is missing",
    _UNKNOWN: "is not a known field",
    "string_type": "must be a string",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object of names and values",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "uuid_type": "must be an id",
    "uuid_parsing": "must be an id",
    "datetime_type": "must be a moment such as 2026-03-02T09:30:00Z",
    "datetime_parsing": "must be a moment such as 2026-03-02T09:30:00Z",
    "datetime_from_date_parsing": "must be a moment such as 2026-03-02T09:30:00Z",
    "datetime_object_invalid": "must be a moment such as 2026-03-02T09:30:00Z",
    "timezone_aware": "must say its offset from UTC, as in 2026-03-02T09:30:00Z",
    "date_type": "must be a date such as 2026-03-02",
    "date_parsing": "must be a date such as 2026-03-02",
    "date_from_datetime_parsing": "must be a date such as 2026-03-02",
    "date_from_datetime_inexact": "must be a date such as 2026-03-02",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "has characters that are not allowed here",
    "string_unicode": "must be readable as Unicode",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
}
_CONTROL_CHARACTERS = r"\x00-\x1f\x7f"


def problems_of(error: ValidationError, *, unknown: str | None = None) -> list[Problem]:
    """What is wrong, field by field, at most MOST_PROBLEMS of them; `unknown` is said of unknown fields."""
    details = error.errors(include_url=False, include_input=False)
    problems = [_problem(detail, unknown) for detail in details[:MOST_PROBLEMS]]
    if more := len(details) - len(problems):
        problems.append(Problem("body", f"has {more} more problems", code="more"))
    return problems


def shown(part: str | int) -> str:
    """A field's name, if it looks like one; it may be anything."""
    return str(part) if _NAME.fullmatch(str(part)) else "(unprintable)"


def _problem(detail: ErrorDetails, unknown: str | None) -> Problem:
    # pydantic says `[key]` where the name itself is wrong; that name stands before it.
    where = ".".join(shown(part) for part in detail["loc"] if part != "[key]") or "body"
    context: dict[str, Any] = detail.get("ctx", {})
    if detail["type"] == "value":  # our own validators'
        return Problem(where, detail["msg"], code=context.get("code", "invalid"))
    code, message = code_of(detail["type"]), _WORDS.get(detail["type"], "is not valid")
    if code == "too_short" and context.get("min_length") == 1:
        code, message = "empty", "must not be empty"
    if detail["type"] == _UNKNOWN and unknown:
        message = unknown
    if context.get("field_type") == "Dictionary":
        message = message.replace("items", "names")
    if _CONTROL_CHARACTERS in str(context.get("pattern", "")):
        message = "must not contain control characters"
    return Problem(where, message.format(**context), code=code)
