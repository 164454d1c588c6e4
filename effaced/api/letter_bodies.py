"""What a caller may send about dead letters."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError
from werkzeug.datastructures import MultiDict

from effaced.api.bodies import Body
from effaced.audit.notes import LONGEST
from effaced.deadletters.arguments import as_uuid
from effaced.model import DeadLetterDomain
from effaced.triage.redrive import FASTEST, PER_SECOND

Typed = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST)]
Days = Annotated[int, Field(ge=0, le=36_500)]
MOST_EVICTED = 10_000
_Text = Annotated[str, StringConstraints(min_length=1, max_length=255)]


def _officer(value: str) -> str:
    if as_uuid(value) is None:
        raise PydanticCustomError("value", "must be the id of an officer, or null")
    return value


class RequeueBody(Body):
    reason: Typed
    force: bool = False


class DecideBody(Body):
    status: Literal["resolved", "rejected", "permanently_failed", "reviewing", "pending"]
    reason: Typed


class SubjectBody(Body):
    """Whether the row under the key is the person's. If not, the request is cancelled."""

    same_person: bool
    reason: Typed


class AssignBody(Body):
    officer: Annotated[str, AfterValidator(_officer)] | None


class NoteBody(Body):
    text: Typed


class ArchiveBody(Body):
    older_than_days: Days = 30

    @property
    def age(self) -> timedelta:
        return timedelta(days=self.older_than_days)


class PurgeBody(Body):
    """`expected` is the number that was confirmed."""

    older_than_days: Days
    expected: Annotated[int, Field(ge=0)]
    reason: Typed


class EvictBody(Body):
    count: Annotated[int, Field(ge=1, le=MOST_EVICTED)]
    domain: DeadLetterDomain | None = None
    compress: bool = False
    reason: Typed


class SummaryBody(Body):
    status: Literal["stale", "archived"]


class FilterBody(Body):
    status: Annotated[list[_Text], Field(min_length=1, max_length=9)] | None = None
    domain: _Text | None = None
    resolver: _Text | None = None
    error: _Text | None = None
    code: _Text | None = None
    request_id: _Text | None = None
    assigned_to: _Text | None = None
    unassigned: bool = False
    late: bool = False
    expired: bool = False

    def given(self) -> MultiDict[str, str]:
        """As the arguments of a query, where they are checked."""
        values: MultiDict[str, str] = MultiDict()
        for name, value in self:
            if isinstance(value, list):
                values.setlist(name, value)
            elif value:
                values[name] = "true" if value is True else value
        return values


class RedriveBody(Body):
    """Without a pace all go at once."""

    filter: FilterBody
    reason: Typed
    force: bool = False
    per_second: Annotated[float, Field(ge=0.01, le=FASTEST)] | None = PER_SECOND
