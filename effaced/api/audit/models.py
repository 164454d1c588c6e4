"""What is sent and answered about the audit trail. No answer names a person."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field, StringConstraints

from effaced.api.models import PRINTABLE, Answer, Body, GivenMoment, Moment, Page, PageQuery
from effaced.api.requests.models import Event
from effaced.model import ExportFormat, ExportStatus

EventType = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=PRINTABLE)]
Actor = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:\-]{1,80}$")]
_REQUEST = "Only events of this request."
_TYPE = "Only events of this type; `GET /api/v1/audit/event-types` lists them."
_ACTOR = "Only what this actor did: `system`, `cli`, `officer:<id>` or `api_key:<id>`."
_FROM = "Only events at this moment or later."
_BEFORE = "Only events before this moment."


# --- sent ---


class EventQuery(PageQuery):
    """Which events; all that are given have to hold."""

    request_id: UUID | None = Field(default=None, description=_REQUEST)
    type: EventType | None = Field(default=None, description=_TYPE)
    actor: Actor | None = Field(default=None, description=_ACTOR)
    from_: GivenMoment | None = Field(default=None, alias="from", description=_FROM)
    before: GivenMoment | None = Field(default=None, description=_BEFORE)


class ExportFilter(Body):
    """Which events; all that are given have to hold, and without any it is the whole trail."""

    request_id: UUID | None = Field(
        default=None, description=f"{_REQUEST} A key without `audit:read` has to name one that it has sent."
    )
    type: EventType | None = Field(default=None, description=_TYPE, examples=["LOCAL_ERASURE_EXECUTED"])
    actor: Actor | None = Field(default=None, description=_ACTOR, examples=["system"])
    from_: GivenMoment | None = Field(default=None, alias="from", description=_FROM)
    before: GivenMoment | None = Field(default=None, description=_BEFORE)


class NewAuditExport(Body):
    """What to export, and how."""

    format: ExportFormat = Field(
        default=ExportFormat.JSONL,
        description="`jsonl`: a JSON object in each line. `csv`: with a header, and safe in spreadsheets.",
    )
    filter: ExportFilter = Field(default=ExportFilter())


# --- answered ---


class AuditEvent(Event):
    """One event of the whole trail."""

    request_id: UUID | None = Field(description="The subject request that it is about, if it is about one.")


class AuditEventPage(Page[AuditEvent]):
    pass


class EventTypeInfo(Answer):
    """A type of event. Types and payload keys are only ever added."""

    type: str
    description: str
    payload_schema: dict[str, Any] = Field(description="JSON Schema of `payload`.")


class EventTypeList(Answer):
    data: list[EventTypeInfo]


class ExportedFilter(Answer):
    """Which events were asked for."""

    model_config = ConfigDict(serialize_by_alias=True)

    request_id: UUID | None
    type: str | None
    actor: str | None
    from_: Moment | None = Field(alias="from")
    before: Moment | None


class ExportProgress(Answer):
    """How many of the events are written."""

    done: int
    total: int


class ExportLinks(Answer):
    self: str
    file: str | None = Field(description="Where the file is, while it can be fetched.")


class AuditExport(Answer):
    """An export of the trail: a job, and for 24 hours a file."""

    id: UUID
    status: ExportStatus = Field(
        description="`pending`: nobody makes it yet. `running`: somebody does. `ready`: the file can be"
        " fetched. `failed`: it was given up after several attempts. `expired`: its time is over, or it was"
        " deleted."
    )
    format: ExportFormat
    filter: ExportedFilter
    events: int | None = Field(description="How many events the file has; null before it is ready.")
    bytes: int | None = Field(description="Its size; null before it is ready.")
    sha256: str | None = Field(description="Of its bytes, in hex; null before it is ready.")
    progress: ExportProgress | None = Field(description="While it is running, else null.")
    last_error: str | None = Field(description="Of the last failed attempt: a class name or code.")
    created_at: Moment
    ready_at: Moment | None
    expires_at: Moment | None = Field(description="Until when the file can be fetched.")
    links: ExportLinks


class AuditExportPage(Page[AuditExport]):
    pass
