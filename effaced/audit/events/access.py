"""Events about people and access: officers, sign-ins, API keys, searches, exports."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from effaced.audit.events.base import Code, Event
from effaced.model import Role


class OfficerCreated(Event):
    type = "OFFICER_CREATED"
    officer_id: UUID
    role: Role


class OfficerDeactivated(Event):
    type = "OFFICER_DEACTIVATED"
    officer_id: UUID


class PasswordChanged(Event):
    type = "PASSWORD_CHANGED"
    officer_id: UUID


class SignedIn(Event):
    type = "SIGNED_IN"
    officer_id: UUID


class SignInRefused(Event):
    """`count` sign-ins of an account, or of unknown ones, were refused since `since`; `why` is the last's."""

    type = "SIGN_IN_REFUSED"
    officer_id: UUID | None
    why: Code
    count: int = 1
    since: datetime | None = None


class ApiKeyCreated(Event):
    type = "API_KEY_CREATED"
    api_key_id: UUID
    approvals_needed: int
    scopes: tuple[Code, ...] = ()


class ApiKeyRevoked(Event):
    type = "API_KEY_REVOKED"
    api_key_id: UUID


class SubjectSearched(Event):
    """An officer looked a person up by an identifier."""

    type = "SUBJECT_SEARCHED"
    kind: Code
    found: int


class NoteForgotten(Event):
    """What a person typed was removed. The events that point at it keep its id and keyed hash."""

    type = "NOTE_FORGOTTEN"
    note_id: UUID


class AuditExported(Event):
    """`events` events were taken out, of those that were committed when the newest was `events_up_to`.

    `export_id`: as a file that stays for a while, not streamed at once.
    """

    type = "AUDIT_EXPORTED"
    format: Code
    events_up_to: int
    events: int | None = None
    request_id: UUID | None = None
    event_type: Code | None = None
    by_actor: Code | None = None
    since: datetime | None = None
    until: datetime | None = None
    export_id: UUID | None = None
