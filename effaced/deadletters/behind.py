"""What stands behind a letter: is its work under way, and is an erasure still to be made?"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, exists, or_

from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeliveryStatus, OutboxOperation, OutboxStatus, Verification
from effaced.notify.tables import Delivery
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.supersede import ERROR as SUPERSEDED
from effaced.outbox.tables import OutboxRow

CALLS = (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
_ENDED = (OutboxStatus.SUCCEEDED, OutboxStatus.ABANDONED)


def under_way() -> ColumnElement[bool]:
    """Its entry, read-back or delivery has not ended: whoever replays it has not been forgotten.

    A parked entry may take months. That is a long replay, not a stale one.
    """
    mine = OutboxRow.entry_id == DeadLetter.entry_id
    return or_(
        and_(DeadLetter.domain.in_(CALLS), exists().where(mine, OutboxRow.status.not_in(_ENDED))),
        and_(
            DeadLetter.domain == DeadLetterDomain.VERIFICATION,
            exists().where(mine, OutboxRow.verification == Verification.DUE),
        ),
        and_(
            DeadLetter.domain == DeadLetterDomain.MESSAGE,
            exists().where(Delivery.id == DeadLetter.entry_id, Delivery.status == DeliveryStatus.PENDING),
        ),
    )


def erasure_missing() -> ColumnElement[bool]:
    """Its call would erase somebody and has not, or not so that it could be seen: it is never put away."""
    mine = OutboxRow.entry_id == DeadLetter.entry_id
    return or_(
        and_(
            DeadLetter.domain.in_(CALLS),
            exists().where(
                mine,
                OutboxRow.operation == OutboxOperation.ERASE,
                OutboxRow.status != OutboxStatus.SUCCEEDED,
                or_(OutboxRow.last_error.is_(None), OutboxRow.last_error != SUPERSEDED),
            ),
        ),
        and_(
            DeadLetter.domain == DeadLetterDomain.VERIFICATION,
            exists().where(mine, OutboxRow.verification.in_(UNCONFIRMED)),
        ),
    )
