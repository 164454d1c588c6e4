"""effaced inside an application of one's own: erase and correct in the application's own transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from uuid import UUID

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from effaced import migrate
from effaced.audit.sink import AuditSink, DatabaseAuditSink
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.sql import SQLCircuitBreakerStateRepository
from effaced.core.crypto import Keyring
from effaced.core.errors import ConfigurationError, Conflict
from effaced.core.schema_level import SchemaGuard
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure
from effaced.model import Correction, CorrectionValue, RequestKind, RequestStatus
from effaced.requests.complete import complete_operations
from effaced.requests.execute import Executor
from effaced.requests.intake import receive
from effaced.requests.tables import Request
from effaced.resolvers.load import load_registry
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.policy import BackoffPolicy, RetryPolicy
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner
from effaced.saga.tell import AbandonedHook


@dataclass(frozen=True, slots=True)
class Taken:
    """A request that was taken in: its id, the ref that people use, and how far it is."""

    request_id: UUID
    ref: str
    status: RequestStatus


class Effaced:
    """One database, one data map, one list of systems. Made once, at start; any thread may use it.

    `sessions` makes sessions on the database that holds the application's tables; effaced's own live
    beside them. `keys` is what `effaced keys new` prints. `resolvers` is a registry, or a resolvers.yaml.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        *,
        keys: str,
        datamap: str | Path,
        resolvers: ResolverRegistry | str | Path,
        audit_sink: AuditSink | None = None,
    ) -> None:
        _require_driver(sessions)
        self._schema = SchemaGuard()
        # Made like the application's, and watched: the application's own sessions are none of our business.
        self._sessions = sessionmaker(class_=sessions.class_, **sessions.kw)
        self._schema.watch(self._sessions)
        self._keyring = Keyring.parse(keys)
        self._datamap = datamap
        self._resolvers = resolvers
        self._plan: ErasurePlan | None = None
        sink = audit_sink or DatabaseAuditSink()
        self.outbox = Outbox(self._sessions, keyring=self._keyring, audit_sink=sink)

    def migrate(self) -> None:
        """Make or update effaced's tables. The application's own are left alone."""
        with self._sessions() as session:
            migrate.upgrade(session.get_bind().engine.url.render_as_string(hide_password=False))

    def erase(
        self, session: Session, subject_id: str, *, subject_type: str | None = None, reason: str | None = None
    ) -> Taken:
        """Erase a person in the caller's transaction, and record every call that has to follow.

        Nothing has happened until the caller commits, and nothing at all if it rolls back. Refused if
        nobody has that id; Conflict if the database stands against it. If an open erasure of the person
        covers this one, it is taken in as a duplicate (status `received`) and completes with the other one.
        `subject_type` is for maps with several kinds of people.
        """
        return self._take(session, RequestKind.ERASURE, subject_id, subject_type, {}, reason)

    def rectify(
        self,
        session: Session,
        subject_id: str,
        corrections: Mapping[str, CorrectionValue],
        *,
        subject_type: str | None = None,
        reason: str | None = None,
    ) -> Taken:
        """Correct values, by category of the data map or by `table.column`, in the caller's transaction."""
        return self._take(session, RequestKind.RECTIFICATION, subject_id, subject_type, corrections, reason)

    def _take(
        self,
        session: Session,
        kind: RequestKind,
        subject_id: str,
        subject_type: str | None,
        corrections: Mapping[str, CorrectionValue],
        reason: str | None,
    ) -> Taken:
        session.flush()
        self._schema.require(session.connection())
        try:
            intake = receive(
                session,
                self._keyring,
                self._plan_on(session),
                kind=kind,
                subject_id=subject_id,
                subject_type=subject_type,
                api_key=None,
                corrections=[Correction(name, value) for name, value in corrections.items()],
                approvals=0,
                reason=reason,
            )
        except IntegrityError:  # one unexecuted erasure per person
            raise Conflict(
                "Somebody else is just having this person erased; roll back and ask again."
            ) from None
        request = intake.request
        if not intake.duplicate:
            self._executor.carry_out(session, request)
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
        max_attempts: int = 8,
        batch_size: int = 50,
        backoff: BackoffPolicy | None = None,
        policy: RetryPolicy | None = None,
        on_abandoned: AbandonedHook | None = None,
    ) -> SagaRunner:
        """What carries the recorded calls out: `await runner.run_once()`, as often as you like."""
        return SagaRunner(
            self.registry,
            self.outbox,
            max_attempts=max_attempts,
            batch_size=batch_size,
            backoff=backoff,
            policy=policy,
            breakers=self.breakers,
            on_abandoned=on_abandoned,
            on_operations_complete=complete_operations,
        )

    @cached_property
    def breakers(self) -> BreakerRegistry:
        """Which systems are left alone for now, shared by all processes; with the built-in policy."""
        return BreakerRegistry(SQLCircuitBreakerStateRepository(self._sessions))

    @cached_property
    def datamap(self) -> DataMap:
        return load_map(self._datamap)

    @property
    def plan(self) -> ErasurePlan:
        """The map, checked against the live database when first needed."""
        if self._plan is not None:
            return self._plan
        with self._sessions() as session:
            return self._plan_on(session)

    def _plan_on(self, session: Session) -> ErasurePlan:
        """The plan, made on the session's own connection if there is none yet.

        A second connection would wait for the caller's locks, or for a pool that the caller has emptied.
        """
        if self._plan is None:
            self._plan = plan_erasure(session.connection(), self.datamap, self._keyring)
        return self._plan

    @cached_property
    def registry(self) -> ResolverRegistry:
        if isinstance(self._resolvers, ResolverRegistry):
            self._resolvers.require_refs(self.datamap.ref_kinds)
            return self._resolvers
        return load_registry(self._resolvers, refs=self.datamap.ref_kinds, keyring=self._keyring)

    @cached_property
    def _executor(self) -> Executor:
        return Executor(self._sessions, self._keyring, self.plan, self.registry)


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
