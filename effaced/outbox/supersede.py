"""Order between requests of one person: a superseded correction is never carried out late.

An erasure supersedes every correction that is not done; a newer correction supersedes the older ones of the
same field. Otherwise a late retry could bring back what was erased, or undo what was corrected.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, Row, and_, literal_column, select, update
from sqlalchemy.orm import Session

from effaced.audit.append import Record, append
from effaced.audit.events import RectificationCompleted, RectificationStepFailed
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.model import Correction, OutboxStatus, StepOutcome, SubjectKey, SubjectRef
from effaced.outbox.countdown import Completed, count_down
from effaced.outbox.entry import COLUMNS, Entry, as_entry, seal_corrections
from effaced.outbox.tables import outbox
from effaced.outbox.unblock import unblock

CODE = "superseded"
ERROR = "Superseded"
# For how long after an attempt that failed, by a timeout for example, the system may still carry the call
# out.
_TAKES_EFFECT = timedelta(minutes=5)


@dataclass(slots=True)
class Superseded:
    """What was superseded, and what the superseding request has to know of it, by resolver.

    Calls that are still under way have to be waited for, until `not_before`. A correction may have changed
    the very reference that a system knows the person by: `refs` are those it was to be called with, and for
    a resolver in `tried` it is unknown whether the system has changed over. `carried` is what is still to be
    corrected.
    """

    entries: list[Entry] = field(default_factory=list)
    completed: list[Completed] = field(default_factory=list)
    not_before: dict[str, datetime] = field(default_factory=dict)
    refs: defaultdict[str, list[SubjectRef]] = field(default_factory=lambda: defaultdict(list))
    tried: set[str] = field(default_factory=set)
    carried: defaultdict[str, list[Correction]] = field(default_factory=lambda: defaultdict(list))

    def add_reference(self, entry: Entry, ref: SubjectRef) -> None:
        self.refs[entry.resolver].append(ref)
        # An attempt that was given back, as a breaker's trial, was a call all the same.
        if entry.attempts or entry.last_attempt_at:
            self.tried.add(entry.resolver)

    def wait_for(self, entry: Entry, ended_at: datetime | None, now: datetime) -> None:
        """Let no call begin while this one may be under way, or may still take effect in the system."""
        until = now
        # One that was not called yet and has a gate is itself waiting for a call that it superseded.
        if entry.status in (OutboxStatus.IN_FLIGHT, OutboxStatus.PENDING) and entry.gate is not None:
            until = entry.gate
        if entry.status is not OutboxStatus.IN_FLIGHT and entry.last_attempt_at:
            # The attempt began with its claim, and its call may have taken long.
            until = max(until, (ended_at or entry.idle_since or entry.last_attempt_at) + _TAKES_EFFECT)
        if until > now:
            self.not_before[entry.resolver] = max(until, self.not_before.get(entry.resolver, until))


@dataclass(frozen=True, slots=True)
class _Replacement:
    """What a request replaces of older corrections: see `supersede_corrections`."""

    fields: Collection[str] | None
    known_as: Mapping[str, str | None] | None

    def fields_left(self, entry: Entry) -> list[str]:
        """The fields of an older correction that are not corrected anew."""
        return [] if self.fields is None else [each for each in entry.fields or () if each not in self.fields]

    def has_other_reference(self, entry: Entry, ref: SubjectRef | None) -> bool:
        return (
            ref is not None and self.known_as is not None and ref.value != self.known_as.get(entry.resolver)
        )


def supersede_corrections(
    session: Session,
    keyring: Keyring,
    subjects: Sequence[SubjectKey],
    *,
    by: UUID,
    fields: Collection[str] | None = None,
    known_as: Mapping[str, str | None] | None = None,
) -> Superseded:
    """Abandon this person's corrections that are not done: all of them, or those of `fields`.

    `subjects` is the person's key under every key of the ring, `by` the superseding request. `known_as`
    has the reference by which a resolver certainly knows the person: an older correction under another one
    can't be made beside the new one, so all of it is superseded and what it had left is carried over. The
    caller completes the requests in `completed` and resolves the dead letters of `entries`.
    """
    result, replacement = Superseded(), _Replacement(fields, known_as)
    if not (entries := _lock_outstanding(session, subjects)):
        return result
    now = dbtime.now(session)
    for entry, ended_at in entries:
        ref = entry.open_ref(keyring) if entry.ref_sealed is not None else None
        left = replacement.fields_left(entry)
        has_other_reference = replacement.has_other_reference(entry, ref)
        if has_other_reference and left and entry.corrections_sealed is not None:
            values = entry.open_corrections(keyring)
            result.carried[entry.resolver] += [each for each in values if each.column in left]
            left = []
        is_replaced = len(left) < len(entry.fields or ())
        if ref is not None and (has_other_reference or is_replaced):
            result.add_reference(entry, ref)
        if is_replaced:
            result.wait_for(entry, ended_at, now)
            if left:
                _keep_only(session, keyring, entry, left)
            else:
                result.entries.append(entry)
    _abandon(session, result, by)
    return result


def outstanding(subject: ColumnElement[bool]) -> ColumnElement[bool]:
    """Corrections that were not made, abandoned ones too: a superseded failure needs no attention."""
    # As literals, or a generic plan could not use the partial index.
    return and_(
        subject,
        outbox.c.operation == literal_column("'rectify'"),
        outbox.c.status != literal_column("'succeeded'"),
        outbox.c.outcome.is_distinct_from(literal_column(f"'{StepOutcome.SUPERSEDED}'")),
    )


def _lock_outstanding(
    session: Session, subjects: Sequence[SubjectKey]
) -> list[tuple[Entry, datetime | None]]:
    """The entries, and when those that were abandoned were."""
    theirs = outbox.c.subject_hmac.in_([each.hmac for each in subjects])
    rows: Sequence[Row[*tuple[object, ...]]] = session.execute(
        select(outbox.c.ended_at, *COLUMNS)
        .where(outstanding(theirs))
        .order_by(outbox.c.entry_id)
        .with_for_update()
    ).all()
    return [(as_entry(row[1:]), row.ended_at) for row in rows]


def _keep_only(session: Session, keyring: Keyring, entry: Entry, names: list[str]) -> None:
    sealed = None
    if entry.corrections_sealed is not None:
        kept = [each for each in entry.open_corrections(keyring) if each.column in names]
        sealed = seal_corrections(keyring, kept, context=entry.entry_id)
    session.execute(
        update(outbox)
        .where(outbox.c.entry_id == entry.entry_id)
        .values(fields=names, corrections_sealed=sealed)
    )


def _abandon(session: Session, result: Superseded, by: UUID) -> None:
    if not result.entries:
        return
    append(
        session,
        [
            Record(
                RectificationStepFailed(
                    resolver=each.resolver, error=ERROR, code=CODE, attempts=each.attempts, superseded_by=by
                ),
                request_id=each.request_id,
                entry_id=each.entry_id,
                subject=each.subject,
            )
            for each in result.entries
        ],
    )
    # With a new token, a runner that is calling one of these can't settle it any more.
    session.execute(
        update(outbox)
        .where(outbox.c.entry_id.in_([each.entry_id for each in result.entries]))
        .values(
            status=OutboxStatus.ABANDONED,
            token=outbox.c.token + 1,
            gate=None,
            waiting_since=None,
            last_error=ERROR,
            outcome=StepOutcome.SUPERSEDED,
            ended_at=dbtime.now(session),
            corrections_sealed=None,
            ref_sealed=None,
            waits_for=None,
            claimed_alone=False,
            crashes=0,
        )
    )
    unblock(session, [each for each in result.entries if each.unblocks])
    done = Counter((each.request_id, each.operation) for each in result.entries)
    result.completed = list(count_down(session, done).closed)  # corrections are not read back
    who = {each.request_id: each.subject for each in result.entries}
    append(
        session,
        [
            Record(
                RectificationCompleted(operation=operation, superseded=done[request_id, operation]),
                request_id=request_id,
                subject=who[request_id],
            )
            for request_id, operation in result.completed
        ],
    )
