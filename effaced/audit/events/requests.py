"""Events of a request: intake, approval, execution, and the end of what it retained."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from effaced.audit.events.base import Basis, Code, Event, HexDigest, Name, Noted, Payload
from effaced.model import RequestKind


class RequestReceived(Event):
    type = "REQUEST_RECEIVED"
    kind: RequestKind
    approvals_needed: int
    due_at: datetime
    datamap_hash: HexDigest


class RequestRepeated(Event):
    """The same person asked again while this request was open. That asking has a request of its own."""

    type = "REQUEST_REPEATED"


class RequestDuplicate(Event):
    """The person has an open erasure already; this request ends with it.

    Neither this event nor the next two name the other request: its API key may be another one, and whoever
    sent this request may export its trail.
    """

    type = "REQUEST_DUPLICATE"


class DuplicateCompleted(Event):
    """The erasure that this request was a duplicate of is completed, and this request with it."""

    type = "REQUEST_DUPLICATE_COMPLETED"


class DuplicateReleased(Event):
    """The erasure that this request was a duplicate of does not answer it: it needs a review of its own."""

    type = "REQUEST_DUPLICATE_RELEASED"


class RequestCancelled(Noted):
    """An officer closed the request before it was executed."""

    type = "REQUEST_CANCELLED"


class SubjectConfirmed(Noted):
    """An officer confirmed that the row under the person's key, as it was then, is the person's."""

    type = "SUBJECT_CONFIRMED"


class RequestApproved(Noted):
    """`api_key_id`: through this key, over the API."""

    type = "REQUEST_APPROVED"
    approvals_given: int
    approvals_needed: int
    api_key_id: UUID | None = None


class LocalTableErased(Payload):
    table: Name
    action: Code
    rows: int


class CellRetained(Payload):
    table: Name
    column: Name
    basis: Basis
    until: Name | None = None
    first_due: Code | None = None
    rows: int | None = None
    """In how many rows; not known where the erasure has cut them off from the person."""


class TextScrubbed(Payload):
    table: Name
    column: Name
    rows: int


class LocalTableKept(Payload):
    """A table in which something of the person is retained; `rows` is None where that is not counted."""

    table: Name
    rows: int | None = None


class LocalErasureExecuted(Event):
    """The company's own database was changed, in the same transaction as this event."""

    type = "LOCAL_ERASURE_EXECUTED"
    datamap_hash: HexDigest
    tables: tuple[LocalTableErased, ...]
    retained: tuple[CellRetained, ...]
    scrubbed: tuple[TextScrubbed, ...] = ()
    external_calls: int
    without_reference: tuple[Name, ...]


class LocalErasureBegun(Event):
    """A person with very many rows is worked off in batches; the execution follows. Rows that are to go."""

    type = "LOCAL_ERASURE_BEGUN"
    datamap_hash: HexDigest
    tables: tuple[LocalTableErased, ...]


class LocalVerified(Event):
    """Reading back found nothing of the person that had to go, in as many tables. `kept`: what stays."""

    type = "LOCAL_VERIFIED"
    tables: int
    kept: tuple[LocalTableKept, ...] = ()


class LocalColumnCorrected(Payload):
    table: Name
    columns: tuple[Name, ...]
    rows: int


class LocalRectificationExecuted(Event):
    """The company's own database was corrected, in the same transaction as this event. No value is here."""

    type = "LOCAL_RECTIFICATION_EXECUTED"
    datamap_hash: HexDigest
    fields: tuple[Name, ...]
    tables: tuple[LocalColumnCorrected, ...]
    external_calls: int
    without_reference: tuple[Name, ...]
    not_concerned: tuple[Name, ...]


class RequestSuperseded(Event):
    """The person was erased before this correction was carried out: there is nothing left to correct."""

    type = "REQUEST_SUPERSEDED"
    by: UUID


class LocalExecutionFailed(Event):
    type = "LOCAL_EXECUTION_FAILED"
    error: Code
    attempts: int
    tables: tuple[Name, ...] = ()


class RetentionEnded(Noted):
    """What was kept of the person in a table need not be any more: `rows` were deleted or anonymised.

    Very many rows are told of by several events, one for each transaction.
    With action `closed` nothing was left to erase, and whose it was is forgotten.
    """

    type = "RETENTION_ENDED"
    table: Name
    action: Code
    rows: int
    datamap_hash: HexDigest


class RetentionFailed(Event):
    """What has come due could not be erased; what is told of before it stays erased."""

    type = "RETENTION_FAILED"
    error: Code
