"""effaced inside an application of one's own: erase and correct in the application's own transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from uuid import UUID

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from effaced import migrate
from effaced.audit.sink import AuditSink, DatabaseAuditSink, events_to, with_sink
from effaced.breakers.listeners import BreakerListener
from effaced.breakers.policy import BreakerPolicies, CallLimits
from effaced.breakers.policy_file import load_policies
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.base import BreakerStore
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.composition import CompositionRoot
from effaced.core import retry_defaults as defaults
from effaced.core.arguments import checked
from effaced.core.crypto import Keyring
from effaced.core.db.schema_level import SchemaGuard
from effaced.core.db.transactions import own_sessions, require_transaction
from effaced.core.errors import ConfigurationError, Conflict
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.model import Correction, CorrectionValue, RequestKind, RequestStatus
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.tables import Request
from effaced.resolvers.load import load_registry
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.policy import BackoffPolicy, RetryPolicy
from effaced.saga.abandoned_hook import AbandonedHook
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner


@dataclass(frozen=True, slots=True)
class Taken:
    """A request that was taken in: its id, the ref that people use, and how far it is."""

    request_id: UUID
    ref: str
    status: RequestStatus


@checked
class Effaced:
    """One database, one data map, one list of systems. Create it once, at start; it is thread-safe.

    `sessions` makes sessions on the database that holds the application's tables; effaced keeps its own
    beside them. `keys` is what `effaced keys new` prints. `resolvers` is a registry, or a resolvers.yaml.
    `breakers` is a breakers.yaml, without which the built-in policy applies; `breaker_listeners` are notified
    of calls and transitions.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        *,
        keys: str,
        datamap: str | Path,
        resolvers: ResolverRegistry | str | Path,
        audit_sink: AuditSink | None = None,
        breakers: str | Path | None = None,
        breaker_listeners: Sequence[BreakerListener] = (),
    ) -> None:
        _require_driver(sessions)
        self._schema = SchemaGuard()
        sink = self._sink = audit_sink or DatabaseAuditSink()
        self._sessions = with_sink(own_sessions(sessions), sink)
        self._schema.watch(self._sessions)
        self._keyring = Keyring.parse(keys)
        self._root = _Embedded(self._sessions, self._keyring, sink, datamap, resolvers, breakers)
        self._root.breaker_listeners = tuple(breaker_listeners)

    def migrate(self) -> None:
        """Make or update effaced's tables, where the application's engine looks. Its own are left alone."""
        with self._sessions() as session:
            migrate.upgrade(session.get_bind().engine)

    def erase(
        self,
        session: Session,
        subject_id: str | int | UUID,
        *,
        subject_type: str | None = None,
        reason: str | None = None,
    ) -> Taken:
        """Erase a person in the caller's transaction, and record every call that has to follow.

        Nothing has happened until the caller commits, and nothing at all if it rolls back. Refused if
        nobody has that id; Conflict if the database stands against it. If an open erasure of the person
        covers this one, it is taken in as a duplicate (status `received`) and completes with the other one.
        `subject_type` is for maps with several kinds of people.
        """
        with events_to(session, self._sink):
            return self._take(session, RequestKind.ERASURE, subject_id, subject_type, {}, reason)

    def rectify(
        self,
        session: Session,
        subject_id: str | int | UUID,
        corrections: Mapping[str, CorrectionValue],
        *,
        subject_type: str | None = None,
        reason: str | None = None,
    ) -> Taken:
        """Correct values, by category of the data map or by `table.column`, in the caller's transaction."""
        with events_to(session, self._sink):
            return self._take(
                session, RequestKind.RECTIFICATION, subject_id, subject_type, corrections, reason
            )

    def _take(
        self,
        session: Session,
        kind: RequestKind,
        subject_id: str | int | UUID,
        subject_type: str | None,
        corrections: Mapping[str, CorrectionValue],
        reason: str | None,
    ) -> Taken:
        asked = IntakeRequest(
            kind,
            str(subject_id),
            subject_type=subject_type,
            corrections=[Correction(name, value) for name, value in corrections.items()],
            approvals=0,
            reason=reason,
        )
        require_transaction(session.connection())
        session.flush()
        self._schema.require(session.connection())
        executor = self._root.executor_on(session)
        try:
            intake = receive(session, self._keyring, executor.plan_on(session), asked)
        except IntegrityError:  # one unexecuted erasure per person
            raise Conflict(
                "Somebody else is just having this person erased; roll back and ask again."
            ) from None
        request = intake.request
        if not intake.duplicate:
            executor.carry_out(session, request)
            session.flush()
            # The application's objects of the person are not as the database has them any more.
            session.expire_all()
        return Taken(request.id, request.ref, request.status)

    def look_up(self, session: Session, request_id: UUID) -> Taken | None:
        """How far a request is."""
        request = session.get(Request, request_id, populate_existing=True)
        return Taken(request.id, request.ref, request.status) if request else None

    def runner(
        self,
        *,
        max_attempts: int = defaults.MAX_ATTEMPTS,
        batch_size: int = defaults.BATCH_SIZE,
        backoff: BackoffPolicy | None = None,
        policy: RetryPolicy | None = None,
        on_abandoned: AbandonedHook | None = None,
    ) -> SagaRunner:
        """What carries the recorded calls out: `await runner.run_once()`, as often as you like.

        Breakers open before a resolver's attempts are used up, by the fewest of any runner made here.
        """
        self._root.expect_attempts(policy.max_attempts if policy else max_attempts)
        return self._root.make_runner(
            max_attempts=max_attempts,
            batch_size=batch_size,
            backoff=backoff,
            policy=policy,
            on_abandoned=on_abandoned,
        )

    @property
    def outbox(self) -> Outbox:
        """The calls themselves."""
        return self._root.outbox

    @property
    def breakers(self) -> BreakerRegistry:
        """The circuit breakers, shared by all processes, with what was changed at run time."""
        return self._root.breakers

    @property
    def registry(self) -> ResolverRegistry:
        return self._root.registry

    @property
    def datamap(self) -> DataMap:
        return self._root.datamap

    @property
    def plan(self) -> ErasurePlan:
        """The plan by the map, which is checked against the live database. Kept until the schema changes."""
        return self._root.plan


class _Embedded(CompositionRoot):
    """The parts of an application, from what it passed to `Effaced`."""

    def __init__(
        self,
        sessions: sessionmaker[Session],
        keyring: Keyring,
        audit_sink: AuditSink,
        datamap: str | Path,
        resolvers: ResolverRegistry | str | Path,
        breakers: str | Path | None,
    ) -> None:
        super().__init__(sessions, keyring, audit_sink)
        self._datamap = datamap
        self._resolvers = resolvers
        self._breakers_file = breakers
        self._policy = RetryPolicy()

    @cached_property
    def datamap(self) -> DataMap:
        return load_map(self._datamap)

    @cached_property
    def registry(self) -> ResolverRegistry:
        if isinstance(self._resolvers, ResolverRegistry):
            self._resolvers.require_refs(self.datamap.ref_kinds)
            return self._resolvers
        return load_registry(self._resolvers, refs=self.datamap.ref_kinds, keyring=self.keyring)

    @property
    def policy(self) -> RetryPolicy:
        return self._policy

    def expect_attempts(self, attempts: int) -> None:
        """A runner makes so many attempts; breakers have to open before the fewest of any runner."""
        if attempts < self._policy.max_attempts:
            self._policy = RetryPolicy(max_attempts=attempts)
            self.breakers.refresh_policies()

    @cached_property
    def breaker_store(self) -> BreakerStore:
        return SqlBreakerStore(self._sessions)

    def _load_breaker_policies(self, limits: Mapping[str, CallLimits]) -> BreakerPolicies:
        return load_policies(self._breakers_file, limits=limits)


def _require_driver(sessions: sessionmaker[Session]) -> None:
    with sessions() as session:
        dialect = session.get_bind().dialect
    if dialect.name not in ("sqlite", "postgresql") or (
        dialect.name == "postgresql" and dialect.driver != "psycopg"
    ):
        raise ConfigurationError(
            f"effaced works with SQLite, and with PostgreSQL through psycopg 3 (postgresql+psycopg://),"
            f" not with {dialect.name}+{dialect.driver}."
        )
