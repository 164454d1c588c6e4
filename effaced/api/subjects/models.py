"""What is sent and answered about people. Answers have keyed hashes and nothing that names anybody."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from effaced.api.models import PRINTABLE, Answer, Body, Moment, Name, Page
from effaced.api.requests.models import Request
from effaced.requests.identifiers import LONGEST


class SubjectSearch(Body):
    """A person by their key in the data map's subject table, or by an identifier that it declares."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=PRINTABLE)] | None = Field(
        default=None, repr=False, description="As in the `subject` of a request.", examples=["4711"]
    )
    type: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=PRINTABLE)] | None = Field(
        default=None, description="With `id`: which of the data map's kinds of people. Without it, the first."
    )
    identifier: Name | None = Field(
        default=None,
        description="Which identifier, by its name in the data map; with `value`, and instead of `id`.",
        examples=["email"],
    )
    value: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST, pattern=PRINTABLE)] | None = (
        Field(default=None, repr=False, examples=["p1@example.org"])
    )


class Subject(Answer):
    """A person for whom there are requests that the caller may know of."""

    key: str = Field(description="Stands for the person in paths, queries and the audit trail.")
    requests: int
    open: int = Field(description="How many of them are not closed yet.")
    last_received_at: Moment


class SubjectList(Answer):
    data: list[Subject] = Field(
        description="Empty if the caller may know of none. Whoever has requests from before and after a"
        " rotation of keys is there once for each."
    )


class SubjectHistory(Page[Request]):
    """The requests of one person, the latest due date first."""

    key: str
