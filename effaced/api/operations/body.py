"""Reading a body: its bytes, its JSON, its fields."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TypeVar

from flask import Request
from pydantic import ValidationError
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from effaced.api.models import Body
from effaced.api.operations.problems import MALFORMED, TOO_LARGE, ApiProblem
from effaced.api.operations.validation import MOST_PROBLEMS, problems_of, shown
from effaced.core.errors import Problem, Refused

B = TypeVar("B", bound=Body)
_READ_OFF = 16 * 1_048_576
_PLACE = re.compile(r"line \d+ column \d+")


def read_body(request: Request, model: type[B]) -> B:
    """The body, checked. Refuses with 413, 415, 400 or 422; the latter names every wrong field."""
    if not request.is_json:
        raise UnsupportedMediaType
    data = read_bytes(request)
    try:
        body = model.model_validate_json(data)
        refuse_repeated_names(data)
        return body
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            place = _PLACE.search(str(first.get("ctx", {}).get("error", "")))
            where = f" It breaks off at {place[0]}." if place else ""
            raise ApiProblem(MALFORMED, f"The body can't be read as JSON in UTF-8.{where}") from None
        problems = problems_of(error)
    raise Refused("The request body is invalid.", problems=problems)


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
    problems = [Problem(shown(name), "is there twice", code="repeated") for name in repeated[:MOST_PROBLEMS]]
    if more := len(repeated) - len(problems):
        problems.append(Problem("body", f"has {more} more problems", code="more"))
    raise Refused("The request body is invalid.", problems=problems)


def read_bytes(request: Request) -> bytes:
    """The body as it was sent; refuses with 413 what is too large."""
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
