"""The bases of what goes in and out of the API: bodies, queries, answers, pages.

A body is taken literally. A query is text, so its values are converted. An answer is checked when it is made.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Generic, TypeVar
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from effaced.core import clock
from effaced.core.paging import PAGE

T = TypeVar("T")
MOST_PER_PAGE = 500
LONGEST_NAME = 255
_EARLIEST, _LATEST = 1900, 9998
# PostgreSQL can't even compare a NUL, and no name has control characters.
PRINTABLE = r"^[^\x00-\x1f\x7f]*$"


def _representable(at: datetime) -> datetime:
    # Beyond these years a time zone can move a moment out of what a datetime can hold.
    if not _EARLIEST <= at.year <= _LATEST:
        said = f"must be between the years {_EARLIEST} and {_LATEST}"
        raise PydanticCustomError("value", said, {"code": "out_of_range"})
    return at


Moment = Annotated[
    datetime,
    PlainSerializer(clock.text, return_type=str),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "examples": ["2026-03-02T09:30:00.000Z"]},
        mode="serialization",
    ),
]
"""A moment in an answer: RFC 3339 in UTC, to the millisecond."""

GivenMoment = Annotated[AwareDatetime, AfterValidator(_representable)]
"""A moment that a caller names; it has to say its offset."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=PRINTABLE)]
"""The name of a resolver, a class or a code."""


def without_fraction(value: object) -> object:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**63
    return int(value) if whole else value  # type: ignore[call-overload]


WHOLE = BeforeValidator(without_fraction)
"""Of integers in bodies: JSON has one kind of number, in which 162.0 is the integer 162."""

Cursor = Annotated[str, StringConstraints(min_length=1, max_length=8_000, pattern=PRINTABLE)]


class Body(BaseModel):
    """Base of all bodies: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class Query(BaseModel):
    """Base of all queries. A mistyped filter would take in everything, so an unknown one is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class NoQuery(Query):
    """Of operations that take no arguments."""


class PageQuery(Query):
    """Which part of a list."""

    after: Cursor | None = Field(
        default=None, description="`next` of the page before this one. Without it, the first page."
    )
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)] = Field(
        default=PAGE, description="How many at most."
    )


class Answer(BaseModel):
    """Base of all answers. Fields are only ever added to it."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_mode="serialization")  # type: ignore[typeddict-unknown-key]


class Page(Answer, Generic[T]):
    """A part of a list, in the list's order."""

    data: list[T]
    next: str | None = Field(description="The `after` of the next page; null on the last one.")


class Id(Answer):
    """A thing by its id."""

    id: UUID
