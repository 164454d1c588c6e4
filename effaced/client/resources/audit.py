"""What happened, who did it, and proof of it to take away.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.runners import M, Resource, listing, operation


class AuditEvent(Answer):
    """One event of the whole trail."""

    id: int
    type: str
    at: datetime
    actor: str
    entry_id: UUID | None
    payload: dict[str, Any]
    """Ids, words, counts and moments; nothing personal."""

    request_id: UUID | None
    """The subject request that it is about, if it is about one."""


class AuditEventPage(Listed[AuditEvent]):
    pass


class ExportLinks(Answer):
    self: str
    file: str | None
    """Where the file is, while it can be fetched."""


class ExportProgress(Answer):
    """How many of the events are written."""

    done: int
    total: int


class ExportedFilter(Answer):
    """Which events were asked for."""

    request_id: UUID | None
    type: str | None
    actor: str | None
    from_: datetime | None = Field(alias="from")
    before: datetime | None


class AuditExport(Answer):
    """An export of the trail: a job, and for 24 hours a file."""

    id: UUID
    status: str
    """`pending`: nobody makes it yet. `running`: somebody does. `ready`: the file can be fetched.
    `failed`: it was given up after several attempts. `expired`: its time is over, or it was deleted.
    """

    format: str
    filter: ExportedFilter
    events: int | None
    """How many events the file has; null before it is ready."""

    bytes: int | None
    """Its size; null before it is ready."""

    sha256: str | None
    """Of its bytes, in hex; null before it is ready."""

    progress: ExportProgress | None
    """While it is running, else null."""

    last_error: str | None
    """Of the last failed attempt: a class name or code."""

    created_at: datetime
    ready_at: datetime | None
    expires_at: datetime | None
    """Until when the file can be fetched."""

    links: ExportLinks


class AuditExportPage(Listed[AuditExport]):
    pass


class EventTypeInfo(Answer):
    """A type of event. Types and payload keys are only ever added."""

    type: str
    description: str
    payload_schema: dict[str, Any]
    """JSON Schema of `payload`."""


class EventTypeList(Listed[EventTypeInfo]):
    pass


class AuditApi(Resource[M]):
    """What happened, who did it, and proof of it to take away."""

    @listing
    def list_events(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        request_id: UUID | str | None = None,
        type: str | None = None,
        actor: str | None = None,
        from_: datetime | None = None,
        before: datetime | None = None,
    ) -> Listing[AuditEventPage, AuditEvent]:
        """The whole audit trail, newest first.

        Needs the scope `audit:read`.
        """
        return Listing(
            "list_audit_events",
            "GET",
            "/api/v1/audit/events",
            AuditEventPage,
            query={
                "after": after,
                "limit": limit,
                "request_id": request_id,
                "type": type,
                "actor": actor,
                "from": from_,
                "before": before,
            },
        )

    @listing
    def list_event_types(self) -> Listing[EventTypeList, EventTypeInfo]:
        """The types of events, with the JSON Schema of each one's payload.

        They are a public format: types and keys are only ever added.

        Every API key may call it.
        """
        return Listing("list_event_types", "GET", "/api/v1/audit/event-types", EventTypeList)

    @listing
    def list_exports(
        self, *, after: str | None = None, limit: int | None = None
    ) -> Listing[AuditExportPage, AuditExport]:
        """Exports, newest first: this key's own, and with `audit:read` all that were made with `audit:read`.

        Needs the scope `audit:read` or `requests:read`.
        """
        return Listing(
            "list_audit_exports",
            "GET",
            "/api/v1/audit/exports",
            AuditExportPage,
            query={"after": after, "limit": limit},
        )

    @operation
    def create_export(
        self,
        *,
        format: Literal["csv", "jsonl"] | None = None,
        filter: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[AuditExport]:
        """Have a file made of the trail.

        A key with `audit:read` exports any part of it, any other one the trail of a request that it has
        sent: `filter.request_id` is then required. At most 10 exports of a key are under way or can be
        fetched.

        Needs the scope `audit:read` or `requests:read`.
        """
        return Call(
            "create_audit_export",
            "POST",
            "/api/v1/audit/exports",
            AuditExport,
            body={} | given(format=format, filter=filter),
            idempotency_key=idempotency_key,
        )

    @operation
    def get_export(self, export_id: UUID | str) -> Call[AuditExport]:
        """One export: how far it is, and where its file is.

        Needs the scope `audit:read` or `requests:read`.
        """
        return Call("get_audit_export", "GET", f"/api/v1/audit/exports/{part(export_id)}", AuditExport)

    @operation
    def delete_export(self, export_id: UUID | str) -> Call[None]:
        """Delete the file of an export before it expires, or stop making it.

        The export itself is still shown, as expired. Deleting it again changes nothing.

        Needs the scope `audit:read` or `requests:read`.
        """
        return Call("delete_audit_export", "DELETE", f"/api/v1/audit/exports/{part(export_id)}", type(None))

    @operation
    def get_export_file(self, export_id: UUID | str) -> Call[bytes]:
        """The file of an export, as often as it is wanted until it expires.

        Needs the scope `audit:read` or `requests:read`.
        """
        return Call("get_audit_export_file", "GET", f"/api/v1/audit/exports/{part(export_id)}/file", bytes)
