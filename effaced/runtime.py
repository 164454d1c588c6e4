"""What a running effaced is made of: settings, database, keys, data map, resolvers."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property

from effaced import migrate
from effaced.audit.sink import DatabaseAuditSink
from effaced.config import Settings
from effaced.crypto import Keyring
from effaced.datamap.load import load_map
from effaced.datamap.model import DataMap
from effaced.datamap.plan import ErasurePlan, plan_erasure
from effaced.db import Database
from effaced.errors import ConfigurationError, Problem
from effaced.requests.complete import complete_operations
from effaced.requests.execute import Executor
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
        _require_time(registry, self.settings.lease)
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

    def require_ready(self) -> None:
        """Refuse to start with a database, data map or resolver file that does not fit."""
        with self.db.read() as session:
            migrate.require_current(session.connection())
        _ = self.plan, self.registry


def _require_time(registry: ResolverRegistry, lease: timedelta) -> None:
    """A call and its read-back must fit into the lease, or another runner takes the entry meanwhile."""
    problems = [
        Problem(f"resolver {each.name}", f"timeout must be under {lease.total_seconds() / 2:g} seconds")
        for each in registry
        if each.limits.timeout * 2 >= lease
    ]
    if problems:
        raise ConfigurationError("EFFACED_LEASE_SECONDS is too short for these:", problems=problems)
