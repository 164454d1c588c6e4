"""What a running effaced is made of: settings, database, keys, data map, resolvers, targets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from uuid import UUID

from sqlalchemy.orm import Session

from effaced import migrate
from effaced.audit.sink import DatabaseAuditSink
from effaced.config import Settings
from effaced.crypto import Keyring
from effaced.datamap.load import load_map
from effaced.datamap.model import DataMap
from effaced.datamap.plan import ErasurePlan, plan_erasure
from effaced.db import Database
from effaced.deadletters.record import Failure, record_failures, record_recoveries
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.errors import ConfigurationError, Problem
from effaced.model import DeadLetterDomain
from effaced.notify.config import Targets, load_targets
from effaced.notify.deliver import Deliverer
from effaced.notify.settle import Rules, Undeliverable
from effaced.requests.complete import complete_operations
from effaced.requests.execute import Executor
from effaced.requests.letters import execution_to_come
from effaced.requests.read import refs_of
from effaced.requests.redrive_set import AHEAD, advance_all
from effaced.resolvers.load import load_registry
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.policy import BackoffPolicy
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner


class Runtime:
    """Hands every entry point the same things. Files are read when first needed and then kept."""

    def __init__(self, settings: Settings, *, database: Database | None = None) -> None:
        self.settings = settings
        self.db = database or Database(settings.database_url)
        self.keyring: Keyring = settings.keyring

    @cached_property
    def datamap(self) -> DataMap:
        return load_map(self.settings.datamap)

    @cached_property
    def plan(self) -> ErasurePlan:
        with self.db.read() as session:
            return plan_erasure(session.connection(), self.datamap)

    @cached_property
    def registry(self) -> ResolverRegistry:
        registry = load_registry(self.settings.resolvers, refs=[each.kind for each in self.datamap.refs])
        _require_time(
            {f"resolver {each.name}": each.limits.timeout for each in registry}, self.settings.lease
        )
        return registry

    @cached_property
    def executor(self) -> Executor:
        return Executor(self.db, self.keyring, self.plan, self.registry)

    @cached_property
    def backoff(self) -> BackoffPolicy:
        return BackoffPolicy(
            base_delay=timedelta(seconds=self.settings.backoff_seconds),
            max_delay=timedelta(seconds=self.settings.backoff_cap_seconds),
            lease=self.settings.lease,
        )

    def runner(self) -> SagaRunner:
        return SagaRunner(
            self.registry,
            Outbox(self.db.sessions, keyring=self.keyring),
            DatabaseAuditSink(),
            max_attempts=self.settings.max_attempts,
            crash_limit=self.settings.crash_limit,
            batch_size=self.settings.batch_size,
            max_age=timedelta(days=self.settings.max_age_days),
            backoff=self.backoff,
            on_operations_complete=complete_operations,
        )

    @cached_property
    def targets(self) -> Targets:
        if self.settings.notify is None:
            return Targets()
        targets = load_targets(self.settings.notify, public_url=self.settings.public_url)
        _require_time({f"target {each.name}": each.timeout for each in targets}, self.settings.lease)
        return targets

    def deliverer(self) -> Deliverer:
        rules = Rules(
            max_attempts=self.settings.max_attempts,
            max_age=timedelta(days=self.settings.max_age_days),
            backoff=self.backoff,
            on_undeliverable=_open_dead_letter,
            on_delivered=_resolve_dead_letter,
        )
        return Deliverer(self.targets, self.db, rules, refs_of=refs_of)

    @property
    def dead_letters(self) -> SQLFailedOperationRepository:
        return SQLFailedOperationRepository(self.db, self.keyring, also_under_way=(execution_to_come(),))

    def advance_redrives(self) -> int:
        """Take every redrive as far as its pace allows until the next sweep; how many there are."""
        ahead = max(AHEAD, timedelta(seconds=2 * self.settings.sweep_seconds))
        return advance_all(self.db, ahead=ahead)

    def require_ready(self) -> None:
        """Refuse to start with a database or a configuration file that does not fit."""
        with self.db.read() as session:
            migrate.require_current(session.connection())
        _ = self.plan, self.registry, self.targets


def _open_dead_letter(session: Session, lost: Undeliverable) -> None:
    # About no request: whether somebody could be told of it holds no request up.
    failure = Failure(
        domain=DeadLetterDomain.MESSAGE,
        request_id=None,
        subject=None,
        error=lost.error,
        code=lost.code,
        entry_id=lost.id,
        resolver=lost.target,
        attempts=lost.attempts,
    )
    record_failures(session, [failure])


def _resolve_dead_letter(session: Session, delivery_id: UUID) -> None:
    record_recoveries(session, (DeadLetterDomain.MESSAGE,), [delivery_id])


def _require_time(timeouts: Mapping[str, timedelta], lease: timedelta) -> None:
    """A call and its read-back must fit into the lease, or another runner takes the entry meanwhile."""
    problems = [
        Problem(name, f"timeout must be under {lease.total_seconds() / 2:g} seconds")
        for name, timeout in timeouts.items()
        if timeout * 2 >= lease
    ]
    if problems:
        raise ConfigurationError("EFFACED_LEASE_SECONDS is too short for these:", problems=problems)
