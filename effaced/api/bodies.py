"""What a caller may send, and what is said when it is something else. Sent values are never repeated."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Annotated, Any, Literal, TypeVar

from flask import Request
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from effaced.api.problems import MALFORMED, TOO_LARGE, ApiProblem
from effaced.audit.notes import LONGEST
from effaced.core.errors import Problem, Refused
from effaced.model import CorrectionValue

B = TypeVar("B", bound="Body")
# Unknown fields are named in the answer; only what looks like a name is.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,126}")
MOST_CORRECTIONS, LONGEST_VALUE = 50, 10_000
# No policy has as many fields. Each wrong name is answered with the closest right one, which costs time.
MOST_POLICY_FIELDS = 50
# A body can have more mistakes than anybody reads.
MOST_PROBLEMS = 50
_READ_OFF = 16 * 1_048_576
_PLACE = re.compile(r"line \d+ column \d+")
_MESSAGES = {
    "missing": "is missing",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must not contain control characters",
    "literal_error": "must be {expected}",
    "model_type": "must be an object",
    "extra_forbidden": "is not a known field",
    "dict_type": "must be an object of names and values",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} names",
}


class Body(BaseModel):
    """Base of all bodies: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class SubjectBody(Body):
    # Without control characters: no key has them, and PostgreSQL can't even compare a NUL.
    id: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
    # Which of the data map's kinds of people, where it has several.
    type: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None


def _value(value: object) -> CorrectionValue:
    """A plain value, small enough to be kept. One answer for whatever else it may be."""
    if isinstance(value, str):
        if len(value) > LONGEST_VALUE:
            raise PydanticCustomError("value", f"must have at most {LONGEST_VALUE} characters")
    elif isinstance(value, int | float) and not abs(value) < 2**63:
        raise PydanticCustomError("value", "must be a number of at most 64 bits; send a longer one as a text")
    elif value is not None and not isinstance(value, bool | int | float):
        raise PydanticCustomError("value", "must be a text, a number, true, false or null")
    return value


Value = Annotated[Any, AfterValidator(_value)]
PolicyFields = Annotated[dict[str, Any], Field(max_length=MOST_POLICY_FIELDS)]


class RequestBody(Body):
    """A subject request. A rectification says what to correct, by category or by `table.column`.

    `retry` are fields of the retry policy, for this request alone. Intake checks both.
    """

    kind: Literal["erasure", "rectification"]
    subject: SubjectBody
    corrections: Annotated[dict[str, Value], Field(min_length=1, max_length=MOST_CORRECTIONS)] | None = Field(
        default=None, repr=False
    )
    reason: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST)] | None = None
    retry: PolicyFields | None = None


class PolicyBody(Body):
    """A change of a policy: the fields that are to differ, and why."""

    policy: PolicyFields
    reason: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST)] | None = None


def read_body(request: Request, model: type[B]) -> B:
    """The body, checked. Refuses with 413, 415, 400 or 422; the latter names every wrong field."""
    if not request.is_json:
        raise UnsupportedMediaType
    data = _read(request)
    try:
        body = model.model_validate_json(data)
        refuse_repeated_names(data)
        return body
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
    if details[0]["type"] == "json_invalid":
        place = _PLACE.search(str(details[0].get("ctx", {}).get("error", "")))
        where = f" It breaks off at {place[0]}." if place else ""
        raise ApiProblem(MALFORMED, f"The body can't be read as JSON in UTF-8.{where}")
    raise _wrong([_problem(detail) for detail in details[:MOST_PROBLEMS]], len(details))


def refuse_repeated_names(data: bytes) -> None:
    """JSON lets a name stand twice and the last one win: not where it decides who is erased."""
    # Numbers are left as they are written: Python refuses to convert very long ones, and nobody needs them.
    json.loads(data, object_pairs_hook=without_repeated, parse_int=str, parse_float=str)


def without_repeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object that the pairs make; refuses names that are there twice. One look-up for each name."""
    values = dict(pairs)
    if len(values) == len(pairs):
        return values
    counted = Counter(name for name, _ in pairs)
    repeated = sorted(name for name, count in counted.items() if count > 1)
    problems = [Problem(_shown(name), "is there twice") for name in repeated[:MOST_PROBLEMS]]
    raise _wrong(problems, len(repeated))


def _wrong(problems: list[Problem], number: int) -> Refused:
    if number > len(problems):
        problems.append(Problem("body", f"has {number - len(problems)} more problems"))
    return Refused("The request body is invalid.", problems=problems)


def _read(request: Request) -> bytes:
    try:
        data = request.get_data()
        if request.content_length is None:
            # A chunked body ends at the limit without a word; only reading on tells.
            request.stream.read(1)
    except RequestEntityTooLarge:
        # A client hears the answer, and can use the connection again, once it has sent everything.
        if request.environ.get("wsgi.input_terminated"):
            left = _READ_OFF
            while left > 0 and (piece := request.environ["wsgi.input"].read(65_536)):
                left -= len(piece)
        said = f"At most {request.max_content_length} bytes are accepted; a request needs only a few."
        raise ApiProblem(TOO_LARGE, said) from None
    return data


def _problem(detail: ErrorDetails) -> Problem:
    context: dict[str, Any] = detail.get("ctx", {})
    if detail["type"] == "value":
        return Problem(".".join(_shown(part) for part in detail["loc"]), detail["msg"])
    message = _MESSAGES.get(detail["type"], "is not valid").format(**context)
    return Problem(".".join(_shown(part) for part in detail["loc"]) or "body", message)


def _shown(part: str | int) -> str:
    return str(part) if _NAME.fullmatch(str(part)) else "(unprintable)"
