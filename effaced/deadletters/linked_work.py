"""When a dead letter may be closed: the one rule about the work it stands for (ADR 0026).

Whatever closes, archives, removes or releases dead letters asks here, whoever the caller is.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Column, ColumnElement, MetaData, Table, Uuid, and_, exists, func, or_, select
from sqlalchemy.orm import Session

from effaced.core.db import UtcDateTime, is_postgres
from effaced.core.db.transactions import require_transaction
from effaced.core.errors import Conflict, Problem
from effaced.deadletters.rules import BY_HAND, SETTLED
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeliveryStatus, OutboxStatus, StepOutcome, Verification
from effaced.notify.tables import Delivery
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.tables import OutboxRow

_CALLS = (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
_ENDED = (OutboxStatus.SUCCEEDED, OutboxStatus.ABANDONED)
# The package `requests` is built on this one, so the columns needed here are described, not imported.
REQUESTS = Table(
    "effaced_requests",
    MetaData(),
    Column("id", Uuid()),
    Column("execute_at", UtcDateTime()),
    Column("executed_at", UtcDateTime()),
    Column("closed_at", UtcDateTime()),
)
# Why a dead letter over work that is not done can't be closed.
_REASONS = {
    DeadLetterDomain.EXTERNAL_CALL: "The call behind this dead letter has not succeeded. Retry it, or attest "
    "that it was done by hand; until then it can't be closed.",
    DeadLetterDomain.ATTESTATION: "Nobody has attested the work behind this dead letter. Do it by hand and "
    "attest it; until then it can't be closed.",
    DeadLetterDomain.VERIFICATION: "No check has confirmed that the data behind this dead letter is gone. "
    "Retry it, or attest that the data is gone; until then it can't be closed.",
    DeadLetterDomain.LOCAL_EXECUTION: "The request behind this dead letter was not executed. Fix the cause "
    "and retry it; until then it can't be closed.",
    DeadLetterDomain.MESSAGE: "The message behind this dead letter was not delivered. Retry it, or resolve "
    "it with a reason.",
}


def hold_work(session: Session, work_id: UUID | None) -> None:
    """Until the transaction ends nobody else opens a dead letter for this entry, delivery or request.

    The product holds the row of the work when it opens one; programs may name work that has no row.
    """
    require_transaction(session.connection())
    if work_id is None or not is_postgres(session):  # SQLite has one writer at a time
        return
    number = int.from_bytes(work_id.bytes[-8:], signed=True)
    session.execute(select(func.pg_advisory_xact_lock(number)))
    for key in (OutboxRow.entry_id, Delivery.id, REQUESTS.c.id):
        session.execute(select(key).where(key == work_id).with_for_update())


def refuse_to_close(session: Session, dead_letter_id: UUID, *, decided: bool = False) -> None:
    """Raises if the work behind the dead letter is not done.

    `decided`: a person says, with a reason, that nothing is left to do. That closes an undelivered message,
    and nothing else.
    """
    if (why := why_not_closed(session, dead_letter_id, decided=decided)) is not None:
        problem = Problem("status", "can't change while the work is not done", code="work_not_done")
        raise Conflict(why, problems=[problem])


def why_not_closed(session: Session, dead_letter_id: UUID, *, decided: bool = False) -> str | None:
    """What `refuse_to_close` would say; None if it may be closed."""
    undone = (DeadLetter.id == dead_letter_id) & work_not_done()
    if decided:
        undone &= DeadLetter.domain != DeadLetterDomain.MESSAGE
    domain = session.scalar(select(DeadLetter.domain).where(undone))
    return None if domain is None else _REASONS[domain]


def work_under_way() -> ColumnElement[bool]:
    """The condition for dead letters whose work has not ended, so that their replay is not stale.

    A parked entry may take months. That is a long replay, not a stale one.
    """
    entry = OutboxRow.entry_id == DeadLetter.entry_id
    return or_(
        and_(DeadLetter.domain.in_(_CALLS), exists().where(entry, OutboxRow.status.not_in(_ENDED))),
        and_(
            DeadLetter.domain == DeadLetterDomain.VERIFICATION,
            # A read-back that was given up stays due, but is no longer scheduled.
            exists().where(
                entry, OutboxRow.verification == Verification.DUE, OutboxRow.verify_due_at.is_not(None)
            ),
        ),
        and_(
            DeadLetter.domain == DeadLetterDomain.LOCAL_EXECUTION,
            exists().where(_not_executed(), REQUESTS.c.execute_at.is_not(None)),
        ),
        and_(
            DeadLetter.domain == DeadLetterDomain.MESSAGE,
            exists().where(Delivery.id == DeadLetter.entry_id, Delivery.status == DeliveryStatus.PENDING),
        ),
    )


def work_not_done() -> ColumnElement[bool]:
    """The condition for dead letters over work that was not done: they can't be closed.

    A dead letter that is linked to nothing has no work that could be missing. An undelivered message needs
    nothing more once a person has closed it with a reason.
    """
    entry = OutboxRow.entry_id == DeadLetter.entry_id
    not_called = and_(
        OutboxRow.status != OutboxStatus.SUCCEEDED,
        OutboxRow.outcome.is_distinct_from(StepOutcome.SUPERSEDED),
    )
    decided = and_(DeadLetter.status.in_(SETTLED), DeadLetter.resolution == BY_HAND)
    return or_(
        and_(DeadLetter.domain.in_(_CALLS), exists().where(entry, not_called)),
        and_(
            DeadLetter.domain == DeadLetterDomain.VERIFICATION,
            exists().where(entry, or_(not_called, OutboxRow.verification.in_(UNCONFIRMED))),
        ),
        and_(DeadLetter.domain == DeadLetterDomain.LOCAL_EXECUTION, exists().where(_not_executed())),
        and_(
            DeadLetter.domain == DeadLetterDomain.MESSAGE,
            ~decided,
            exists().where(Delivery.id == DeadLetter.entry_id, Delivery.status != DeliveryStatus.DELIVERED),
        ),
    )


def _not_executed() -> ColumnElement[bool]:
    """The request was neither executed nor closed otherwise; on hold it is still to be executed."""
    return and_(
        REQUESTS.c.id == DeadLetter.request_id,
        REQUESTS.c.executed_at.is_(None),
        REQUESTS.c.closed_at.is_(None),
    )
