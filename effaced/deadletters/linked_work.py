"""The work behind a dead letter: whether it is under way, and whether it is done.

Every call that closes, archives, removes or releases dead letters asks here, whoever makes it.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Uuid, and_, column, exists, or_, table

from effaced.core.db import UtcDateTime
from effaced.deadletters.rules import BY_HAND, SETTLED
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeliveryStatus, OutboxStatus, StepOutcome, Verification
from effaced.notify.tables import Delivery
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.tables import OutboxRow

_CALLS = (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
_ENDED = (OutboxStatus.SUCCEEDED, OutboxStatus.ABANDONED)
# The package `requests` is built on this one, so its table is described here instead of imported.
_requests = table(
    "effaced_requests",
    column("id", Uuid()),
    column("execute_at", UtcDateTime()),
    column("executed_at", UtcDateTime()),
    column("closed_at", UtcDateTime()),
)
# What a caller is told who wants to close a dead letter over work that is not done.
WHY_NOT_CLOSED = {
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


def work_under_way() -> ColumnElement[bool]:
    """The condition for dead letters whose work has not ended, so that a replay of them is not stale.

    A parked entry may take months. That is a long replay, not a stale one.
    """
    entry = OutboxRow.entry_id == DeadLetter.entry_id
    return or_(
        and_(DeadLetter.domain.in_(_CALLS), exists().where(entry, OutboxRow.status.not_in(_ENDED))),
        and_(
            DeadLetter.domain == DeadLetterDomain.VERIFICATION,
            # A read-back that was given up stays due, but nobody will make it.
            exists().where(
                entry, OutboxRow.verification == Verification.DUE, OutboxRow.verify_due_at.is_not(None)
            ),
        ),
        and_(
            DeadLetter.domain == DeadLetterDomain.LOCAL_EXECUTION,
            exists().where(_not_executed(), _requests.c.execute_at.is_not(None)),
        ),
        and_(
            DeadLetter.domain == DeadLetterDomain.MESSAGE,
            exists().where(Delivery.id == DeadLetter.entry_id, Delivery.status == DeliveryStatus.PENDING),
        ),
    )


def work_not_done() -> ColumnElement[bool]:
    """The condition for dead letters over work that was not done: they can't be closed.

    A dead letter that is linked to nothing has no work that could be missing. An undelivered message counts
    as dealt with once a person has decided so with a reason: nothing else is ever done about one.
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
    """Its request was neither executed nor closed otherwise; on hold it is still to be executed."""
    return and_(
        _requests.c.id == DeadLetter.request_id,
        _requests.c.executed_at.is_(None),
        _requests.c.closed_at.is_(None),
    )
