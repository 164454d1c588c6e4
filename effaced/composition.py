"""The parts that carry requests out: data map, plan, systems, breakers, executor, outbox and runner.

Built in one way for a process, from its settings (`runtime.py`), and for an application that embeds effaced,
from what it passes (`embed.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.sink import AuditSink
from effaced.breakers.listeners import BreakerListener
from effaced.breakers.model import Transition
from effaced.breakers.policies_in_force import read_overrides
from effaced.breakers.policy import BreakerPolicies, CallLimits
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.base import BreakerStore
from effaced.core import retry_defaults as defaults
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.core.db.transactions import BATCH_ROWS
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.plan.erasure import ErasurePlan, current_plan, plan_erasure
from effaced.datamap.plan.retention import RetentionPlan, plan_retention
from effaced.requests.complete import complete_operations
from effaced.requests.execute import UTC, Executor
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.policy import BackoffPolicy, RetryPolicy
from effaced.saga.abandoned_hook import AbandonedHook
from effaced.saga.facade import Outbox
from effaced.saga.rules import call_limits
from effaced.saga.runner import SagaRunner


class CompositionRoot(ABC):
    """Builds each part when it is first needed, and once. Subclasses say where the inputs come from."""

    zone: ZoneInfo = UTC
    batch_rows = BATCH_ROWS
    breaker_listeners: Sequence[BreakerListener] = ()
    on_transition: Callable[[Transition], None] | None = None

    def __init__(
        self, database: Database | sessionmaker[Session], keyring: Keyring, audit_sink: AuditSink
    ) -> None:
        self.keyring = keyring
        self._database = database
        self._sessions = database.sessions if isinstance(database, Database) else database
        self._audit_sink = audit_sink
        self._plan: ErasurePlan | None = None
        self._retention: RetentionPlan | None = None
        self._executor: Executor | None = None

    # --- what differs ---

    @property
    @abstractmethod
    def datamap(self) -> DataMap: ...

    @property
    @abstractmethod
    def registry(self) -> ResolverRegistry: ...

    @property
    @abstractmethod
    def policy(self) -> RetryPolicy:
        """The retry policy before anything was changed at run time."""

    @property
    @abstractmethod
    def breaker_store(self) -> BreakerStore: ...

    @abstractmethod
    def _load_breaker_policies(self, limits: Mapping[str, CallLimits]) -> BreakerPolicies: ...

    # --- the parts ---

    @property
    def plan(self) -> ErasurePlan:
        """Made anew when the schema has changed; ConfigurationError if the map does not fit it any more."""
        with self._read() as session:
            return self.plan_on(session)

    def plan_on(self, session: Session) -> ErasurePlan:
        """The plan for the schema that this transaction sees, made on its connection."""
        if self._plan is None:
            self._plan = plan_erasure(session.connection(), self.datamap, self.keyring)
        else:
            self._plan = current_plan(session, self._plan)
        return self._plan

    @property
    def retention(self) -> RetentionPlan:
        with self._read() as session:
            return self.retention_on(session)

    def retention_on(self, session: Session) -> RetentionPlan:
        plan = self.plan_on(session)
        if self._retention is None or self._retention.plan is not plan:
            self._retention = plan_retention(plan, self.zone)
        return self._retention

    @property
    def executor(self) -> Executor:
        if self._executor is None:
            with self._read() as session:
                return self.executor_on(session)
        return self._executor

    def executor_on(self, session: Session) -> Executor:
        """The executor. Its plan is made on this session's connection: a second one would wait for the
        caller's locks, or for a pool that the caller has emptied."""
        if self._executor is None:
            self._executor = Executor(
                self._database,
                self.keyring,
                self.plan_on(session),
                self.registry,
                batch_rows=self.batch_rows,
                retention=self.retention_on(session),
            )
        return self._executor

    @cached_property
    def breaker_policies(self) -> BreakerPolicies:
        return self._load_breaker_policies(call_limits(self.registry, self.policy))

    @cached_property
    def breakers(self) -> BreakerRegistry:
        return BreakerRegistry(
            self.breaker_store,
            self.breaker_policies,
            self.breaker_listeners,
            self.on_transition,
            overrides=self._breaker_overrides,
            limits=self._call_limits,
        )

    def _breaker_overrides(self) -> dict[str, dict[str, Any]]:
        with self._read() as session:
            return read_overrides(session)

    def _call_limits(self) -> dict[str, CallLimits]:
        with self._read() as session:
            return call_limits(self.registry, self.policy, session)

    @cached_property
    def outbox(self) -> Outbox:
        return Outbox(
            self._sessions,
            keyring=self.keyring,
            audit_sink=self._audit_sink,
            on_operations_complete=complete_operations,
            verifies=self._verifies,
        )

    def _verifies(self, resolver: str) -> bool:
        return resolver in self.registry and self.registry.get(resolver).verifies

    def make_runner(
        self,
        *,
        max_attempts: int = defaults.MAX_ATTEMPTS,
        crash_limit: int = defaults.CRASH_LIMIT,
        batch_size: int = defaults.BATCH_SIZE,
        backoff: BackoffPolicy | None = None,
        policy: RetryPolicy | None = None,
        on_abandoned: AbandonedHook | None = None,
    ) -> SagaRunner:
        return SagaRunner(
            self.registry,
            self.outbox,
            max_attempts=max_attempts,
            crash_limit=crash_limit,
            batch_size=batch_size,
            backoff=backoff,
            policy=policy,
            breakers=self.breakers,
            on_abandoned=on_abandoned,
            on_operations_complete=complete_operations,
        )

    def _read(self) -> AbstractContextManager[Session]:
        return self._database.read() if isinstance(self._database, Database) else self._database()
