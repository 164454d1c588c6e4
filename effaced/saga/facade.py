"""The outbox for applications that drive it themselves. All but `enqueue` are transactions of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable
from uuid import UUID

from sqlalchemy import Select, Table, select
from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.append import SYSTEM
from effaced.audit.sink import AuditSink, with_sink
from effaced.core import clock
from effaced.core.arguments import checked, require_positive, require_type
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.db.transactions import own_sessions, require_transaction
from effaced.core.errors import ConfigurationError
from effaced.core.names import name_problem, raise_problem
from effaced.core.retry_defaults import BATCH_SIZE
from effaced.model import Correction, CorrectionValue, OutboxOperation, OutboxStatus, SubjectRef, new_id
from effaced.outbox import claim as claims
from effaced.outbox.countdown import Completed, remaining
from effaced.outbox.due import due_resolvers, status_counts
from effaced.outbox.enqueue import Call, History, enqueue
from effaced.outbox.entry import COLUMNS, Entry, as_entry
from effaced.outbox.requeue import requeue
from effaced.outbox.tables import outbox as outbox_table
from effaced.outbox.waits import restart_waits
from effaced.resolvers.protocols import Erased, Rectified
from effaced.retries.policy import BackoffPolicy
from effaced.saga.answers import as_code
from effaced.saga.decide import abandon, decide, park, retry_later
from effaced.saga.result import Decision, ReadBack, Result, Rules
from effaced.saga.settle import OnComplete, settle

_LEASE = BackoffPolicy().lease
_RULES = Rules()
# What an entry that was tried elsewhere may say of its past.
_MOST_ATTEMPTS = 1_000_000
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


@checked
@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One external call: to be enqueued, or as it was when read.

    An entry to enqueue is pending. It may have been tried elsewhere: its attempts, last error (a class name)
    and moments are kept, and the time in which it has to end begins when it is enqueued here.

    `subject_id` is the person's id when enqueueing; read back it is the keyed hash that stands for them.
    Entries of one person and operation that are enqueued together belong to one request, and complete
    together, unless `request_id` says otherwise. `next_attempt_at` is the lease while in flight.
    """

    resolver: str
    ref: SubjectRef
    subject_id: str = field(repr=False)
    operation: OutboxOperation = OutboxOperation.ERASE
    corrections: tuple[Correction, ...] = ()
    entry_id: UUID = field(default_factory=new_id)
    enqueued_at: datetime = field(default_factory=clock.now)
    status: OutboxStatus = OutboxStatus.PENDING
    attempts: int = 0
    last_attempt_at: datetime | None = None
    last_error: str | None = None
    next_attempt_at: datetime | None = None
    request_id: UUID | None = None
    after: Collection[str] = ()
    token: int = 0


@runtime_checkable
class StatusCountsSource(Protocol):
    """Counts entries per status; every status is in the answer, with zero if need be."""

    def status_counts(
        self, outbox: Table, session_factory: sessionmaker[Session]
    ) -> dict[OutboxStatus, int]: ...


class SqlStatusCountsSource:
    """Counts with one GROUP BY."""

    def status_counts(self, outbox: Table, session_factory: sessionmaker[Session]) -> dict[OutboxStatus, int]:
        with session_factory() as session:
            return status_counts(session, outbox)


def _leave_open(_session: Session, _completed: Sequence[Completed]) -> None:
    pass


def _reads_nothing_back(_resolver: str) -> bool:
    return False


@checked
class Outbox:
    """The transactional outbox in the application's own database.

    `outbox` is effaced's own table, which may also be in the application's metadata; any other table is
    refused. `on_operations_complete` is the callback that a runner takes too: it runs in the transaction that
    ends an operation. `verifies` says whether a resolver can read back: the read-back of a call that the
    application made is left to a runner, and the operation ends after it.
    """

    def __init__(
        self,
        session_factory: sessionmaker[Session],
        outbox: Table = outbox_table,
        *,
        keyring: Keyring,
        status_counts_source: StatusCountsSource | None = None,
        audit_sink: AuditSink | None = None,
        on_operations_complete: OnComplete = _leave_open,
        verifies: Callable[[str], bool] = _reads_nothing_back,
    ) -> None:
        if outbox.fullname != outbox_table.fullname:
            raise ConfigurationError(
                f"Outbox: the table must be {outbox_table.fullname}, not {outbox.fullname}: its rows,"
                " counters and dead letters are written together."
            )
        sessions = own_sessions(session_factory)
        self.sessions = with_sink(sessions, audit_sink) if audit_sink else sessions
        self.keyring = keyring
        self.audit = audit_sink
        self._table = outbox
        self._counts = status_counts_source or SqlStatusCountsSource()
        self._on_operations_complete = on_operations_complete
        self._verifies = verifies

    def enqueue(self, session: Session, entries: Iterable[OutboxEntry]) -> None:
        """Record the calls in the caller's transaction: they are there exactly when it commits."""
        together: dict[tuple[str, OutboxOperation, UUID | None], list[Call]] = defaultdict(list)
        for each in entries:
            _require_new(each)
            together[each.subject_id, each.operation, each.request_id].append(_call(each))
        require_transaction(session.connection())
        for (subject_id, operation, request_id), calls in together.items():
            enqueue(
                session,
                self.keyring,
                request_id or new_id(),
                self.keyring.subject_key(subject_id),
                calls,
                operation=operation,
            )

    def claim_batch(self, limit: int = BATCH_SIZE, *, lease: timedelta = _LEASE) -> Sequence[OutboxEntry]:
        """Claim due entries of any resolver, the oldest first. One whose runner died comes by itself."""
        require_positive("Outbox.claim_batch", limit=limit, lease=lease)
        with self.sessions.begin() as session:
            restart_waits(session)
            names = sorted(due_resolvers(session))
            for name in names:
                if crashed := claims.claim_crashed(session, name, lease=lease):
                    return self._public(crashed)
            return self._public(claims.claim(session, names, limit=limit, lease=lease))

    # --- the result of a claimed entry; one that comes too late changes nothing, and False says so ---

    def mark_succeeded(self, entry: OutboxEntry, *, on_subject_complete: Callable[[], None]) -> bool:
        """The call succeeded. If it was the last of its request, the callback runs in the transaction."""
        return self._mark(
            entry, lambda claimed, now: decide(self._success(claimed), _RULES, now), on_subject_complete
        )

    def _success(self, claimed: Entry) -> Result:
        if claimed.operation is OutboxOperation.RECTIFY:
            return Result(claimed, answer=Rectified())
        due = ReadBack(clock.now()) if self._verifies(claimed.resolver) else None
        return Result(claimed, answer=Erased(), read_back=due)

    def mark_failed(self, entry: OutboxEntry, *, error: str, next_attempt_at: datetime) -> bool:
        """The call failed and is to be retried. `error` is a class name."""
        _require_class_name(error)
        if next_attempt_at.tzinfo is None:
            raise ValueError("Outbox.mark_failed: next_attempt_at must have a time zone")
        return self._mark(entry, lambda claimed, _now: retry_later(Result(claimed), error, next_attempt_at))

    def mark_abandoned(self, entry: OutboxEntry, *, error: str) -> bool:
        """The call has failed for good. `error` is a class name."""
        _require_class_name(error)
        return self._mark(entry, lambda claimed, _now: abandon(Result(claimed), error, "marked_abandoned"))

    def mark_scheduled(self, entry: OutboxEntry, *, resume_at: datetime) -> bool:
        """The system deletes the data later; the entry is due again then."""
        return self._mark(entry, lambda claimed, now: park(Result(claimed), resume_at, _RULES, now))

    # --- for people ---

    def list_abandoned(self, *, limit: int = 100) -> Sequence[OutboxEntry]:
        """Abandoned entries, the oldest first."""
        query = select(*COLUMNS).where(outbox_table.c.status == OutboxStatus.ABANDONED)
        return self._list(query.order_by(outbox_table.c.enqueued_at, outbox_table.c.entry_id), limit)

    def list_scheduled(self, *, limit: int = 100) -> Sequence[OutboxEntry]:
        """Parked entries, the nearest horizon first."""
        query = select(*COLUMNS).where(outbox_table.c.status == OutboxStatus.SCHEDULED)
        return self._list(query.order_by(outbox_table.c.gate, outbox_table.c.entry_id), limit)

    def requeue(
        self, entry_ids: Iterable[UUID | OutboxEntry], *, actor: str = SYSTEM
    ) -> Sequence[OutboxEntry]:
        """Give abandoned erasures a full set of attempts again; which of them that was.

        They are named by their ids, or as they were listed.

        Refuses, before anything changes, without an audit sink and for a rectification among them.
        """
        raise_problem(name_problem("Outbox.requeue: actor", actor, 80))
        if self.audit is None:
            raise ConfigurationError("Outbox: requeue needs an audit_sink to say who did it.")
        ids = [each.entry_id if isinstance(each, OutboxEntry) else each for each in entry_ids]
        with self.sessions.begin() as session:
            return self._public(requeue(session, ids, actor=actor))

    def status_counts(self) -> dict[OutboxStatus, int]:
        """How many entries have which status."""
        return self._counts.status_counts(self._table, self.sessions)

    # ---

    def _mark(
        self,
        entry: OutboxEntry,
        decision_of: Callable[[Entry, datetime], Decision],
        on_last_success: Callable[[], None] = lambda: None,
    ) -> bool:
        with self.sessions.begin() as session:
            query = select(*COLUMNS).where(outbox_table.c.entry_id == entry.entry_id)
            row = session.execute(query).first()
            if row is None:
                return False
            claimed = as_entry(row)._replace(token=entry.token)
            decision = decision_of(claimed, dbtime.now(session))
            settled = settle(session, [decision], self._on_operations_complete)
            # Its counter is locked by now: only the settle that took the last call off it finds zero.
            last = any(each.status is OutboxStatus.SUCCEEDED for each in settled)
            if last and not remaining(session, claimed.request_id, claimed.operation):
                on_last_success()
            return bool(settled)

    def _list(self, query: Select[*tuple[object, ...]], limit: int) -> Sequence[OutboxEntry]:
        require_positive("Outbox", limit=limit)
        with self.sessions() as session:
            return self._public([as_entry(row) for row in session.execute(query.limit(limit))])

    def _public(self, entries: Iterable[Entry]) -> list[OutboxEntry]:
        return [
            OutboxEntry(
                resolver=each.resolver,
                ref=each.open_ref(self.keyring) if each.ref_sealed else SubjectRef(each.ref_kind, ""),
                subject_id=each.subject.hmac,
                operation=each.operation,
                corrections=each.open_corrections(self.keyring) if each.corrections_sealed else (),
                entry_id=each.entry_id,
                enqueued_at=each.enqueued_at,
                status=each.status,
                attempts=each.attempts,
                last_attempt_at=each.last_attempt_at,
                last_error=each.last_error,
                next_attempt_at=each.gate,
                request_id=each.request_id,
                token=each.token,
            )
            for each in entries
        ]


def _require_class_name(error: str) -> None:
    """Messages quote what people typed, and would be kept."""
    if as_code(error, 255) != error:
        raise ValueError("Outbox: error must be a class name such as TimeoutError, of at most 255 characters")


def _require_text(entry: OutboxEntry) -> None:
    """Check the values that the constructors leave unchecked, because the product makes so many of them."""
    require_type("SubjectRef: kind", entry.ref.kind, str)
    require_type("SubjectRef: value", entry.ref.value, str)
    for each in entry.corrections:
        require_type("Correction: column", each.column, str)
        require_type("Correction: value", each.value, CorrectionValue)


def _require_new(entry: OutboxEntry) -> None:
    """Refuse what the outbox would have to change or forget in order to store it."""
    _require_text(entry)
    if problem := _problem(entry):
        raise ConfigurationError(f"Outbox: entry {entry.entry_id} can't be enqueued: {problem}.")


def _problem(entry: OutboxEntry) -> str | None:
    if entry.status is not OutboxStatus.PENDING:
        return f"status must be pending, not {entry.status.value}"
    if not 0 <= entry.attempts <= _MOST_ATTEMPTS:
        return f"attempts must be between 0 and {_MOST_ATTEMPTS}"
    if entry.last_error is not None and as_code(entry.last_error, 255) != entry.last_error:
        return "last_error must be a class name such as TimeoutError, of at most 255 characters"
    for name in ("enqueued_at", "next_attempt_at", "last_attempt_at"):
        at = getattr(entry, name)
        if at is not None and at.tzinfo is None:
            return f"{name} must have a time zone"
        if at is not None and not _EARLIEST <= at <= _LATEST:
            return f"{name} must be between the years {_EARLIEST.year} and {_LATEST.year}"
    return None


def _call(entry: OutboxEntry) -> Call:
    history = History(
        entry.enqueued_at, entry.attempts, entry.next_attempt_at, entry.last_attempt_at, entry.last_error
    )
    return Call(entry.resolver, entry.ref, entry.corrections, entry.after, entry.entry_id, history)
