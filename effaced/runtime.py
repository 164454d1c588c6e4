"""The composition root of a process: what its settings say, and the housekeeping that processes do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from uuid import UUID

from sqlalchemy.orm import Session

from effaced import migrate
from effaced.accounts.refusals import close_refusals
from effaced.accounts.throttle import delete_old_counters
from effaced.audit.exports.claim import restart_waits as restart_export_waits
from effaced.audit.exports.make import ExportMaker
from effaced.audit.exports.remove import CHUNKS_BATCH, delete_old_exports
from effaced.audit.sink import DatabaseAuditSink
from effaced.breakers import operations as breaker_operations
from effaced.breakers import transitions as moves
from effaced.breakers.advice.in_force import PolicyInForce, read_policy
from effaced.breakers.advice.metrics import WINDOW_S, BreakerAdvisor
from effaced.breakers.advice.tuner import BreakerAutoTuner
from effaced.breakers.layered import outage_log
from effaced.breakers.model import RESOLVER, BreakerState, StoreUnavailable, Transition, split_name
from effaced.breakers.open_store import open_store
from effaced.breakers.policies_in_force import read_overrides
from effaced.breakers.policy import DEFAULTS, BreakerPolicies, CallLimits
from effaced.breakers.policy_file import load_policies
from effaced.breakers.stores.base import BreakerStore
from effaced.breakers.telemetry import KEPT, Called
from effaced.composition import CompositionRoot
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.db import Database, sqlite_file
from effaced.core.db.roles import changeable_tables, require_rights
from effaced.core.db.schema_level import SchemaGuard
from effaced.core.http_clients import require_time
from effaced.core.log import get_logger
from effaced.core.private_files import open_to_others
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.deadletters.record import record_failures, record_recoveries
from effaced.deadletters.rules import Failure, sla_from_hours
from effaced.model import DeadLetterDomain
from effaced.notify.claim import restart_waits as restart_delivery_waits
from effaced.notify.config import Targets, load_targets
from effaced.notify.deliver import Deliverer, LookUps
from effaced.notify.guard import Guard
from effaced.notify.notices import BreakerClosed, BreakerOpened, Notice
from effaced.notify.registered import open_targets
from effaced.notify.settle import Rules, Undeliverable
from effaced.notify.subscriptions import subscribe_file
from effaced.notify.tidy import delete_old_messages
from effaced.notify.webhook import RegisteredTarget
from effaced.notify.write import announce
from effaced.outbox.absences import report_absence_spikes
from effaced.outbox.due import due_resolvers
from effaced.outbox.flow import flow_state
from effaced.outbox.waits import restart_waits
from effaced.requests.housekeeping import (
    delete_old_answers,
    delete_old_sandbox_requests,
    delete_policies_of_closed_requests,
)
from effaced.requests.read import about_requests, senders_of
from effaced.requests.trail import exported_trail
from effaced.resolvers.load import load_resolvers
from effaced.resolvers.registry import ResolverRegistry
from effaced.retention.run import RetentionEnder, reassess_stale
from effaced.retries.policy import BackoffPolicy, RetryPolicy
from effaced.saga.gate import Gate
from effaced.saga.rules import call_limits, limits_of
from effaced.saga.runner import SagaRunner
from effaced.triage.housekeeping import ATTEMPTS_BATCH, delete_old_attempts, tidy_dead_letters
from effaced.triage.redrive import AHEAD, advance_all

_log = get_logger(__name__)
_TARGET_TIMEOUT = timedelta(seconds=10)
# So that the housekeeping ends: what it leaves, the next one takes.
_MOST_BATCHES = 50


class Runtime(CompositionRoot):
    """Builds what the processes share, from the settings. Files are read once, when first needed."""

    def __init__(
        self, settings: Settings, *, database: Database | None = None, breaker_overrides: Sequence[str] = ()
    ) -> None:
        self.settings = settings
        self._options = tuple(breaker_overrides)
        self.db = database or Database(settings.database_url)
        self._schema = SchemaGuard()
        self._schema.watch(self.db.sessions, self.db.readers)
        self.zone, self.batch_rows = settings.zone, settings.batch_rows
        self.on_transition = self._announce_transition
        super().__init__(self.db, settings.keyring, DatabaseAuditSink())

    @cached_property
    def datamap(self) -> DataMap:
        return load_map(self.settings.datamap)

    @cached_property
    def registry(self) -> ResolverRegistry:
        return load_resolvers(self.settings, self.datamap)

    @cached_property
    def backoff(self) -> BackoffPolicy:
        return BackoffPolicy(
            base_delay=timedelta(seconds=self.settings.backoff_seconds),
            max_delay=timedelta(seconds=self.settings.backoff_cap_seconds),
            lease=self.settings.lease,
        )

    @cached_property
    def policy(self) -> RetryPolicy:
        age = timedelta(days=self.settings.max_age_days)
        return self.backoff.policy(max_attempts=self.settings.max_attempts, max_age=age)

    @cached_property
    def breaker_store(self) -> BreakerStore:
        """Opened when first needed, which in a worker is after the fork."""
        settings = self.settings
        return open_store(settings.breaker_store, self.db, settings.breaker_redis_url or settings.redis_url)

    def _load_breaker_policies(self, limits: Mapping[str, CallLimits]) -> BreakerPolicies:
        return load_policies(self.settings.breakers, self.settings.breaker_overrides, self._options, limits)

    def _announce_transition(self, made: Transition) -> None:
        if (notice := _notice(made)) is None:
            return
        with self.db.begin() as session:
            # Of a host and its resolver that move together, the resolver's is news enough.
            if made.scope == RESOLVER or not moves.same_moment(session, made):
                announce(session, [notice])

    @cached_property
    def ender(self) -> RetentionEnder:
        return RetentionEnder(self.db, self.keyring, self.retention, self.batch_rows)

    def breaker_policies_in_force(self, session: Session) -> BreakerPolicies:
        """With what people have changed, of breakers and of retries, as it is this moment."""
        limits = call_limits(self.registry, self.policy, session)
        return self.breaker_policies.replace(read_overrides(session), limits)

    def rate_in_force(self, session: Session, breaker: str) -> float | None:
        """The rate limit of a resolver, or of `defaults`, in calls per second; a host has none."""
        if breaker == DEFAULTS:
            return flow_state(session, "").common_rate
        scope, name = split_name(breaker)
        if scope != RESOLVER:
            return None
        return flow_state(session, name).rate(limits_of(self.registry, name).rate_per_second)

    def policy_in_force(self, session: Session, breaker: str) -> PolicyInForce:
        """A breaker's policy and rate, or those of `defaults`, as they are this moment."""
        rate = self.rate_in_force(session, breaker)
        return read_policy(session, self.breaker_policies_in_force(session), breaker, rate)

    @property
    def called(self) -> list[Called]:
        """Whom the breakers guard."""
        return [Called(each.name, each.host, each.limits.rate_per_second) for each in self.registry]

    def advisor(self, session: Session, window_s: float = WINDOW_S) -> BreakerAdvisor:
        return BreakerAdvisor(session, self.called, self.breaker_policies_in_force(session), window_s)

    def tuner(self, session: Session) -> BreakerAutoTuner:
        return BreakerAutoTuner(session, self.breaker_policies_in_force(session))

    def restart_waits(self) -> None:
        """After the clock was set back: restart waits, so that none lasts longer than intended."""
        with self.db.begin() as session:
            restart_waits(session)
            restart_delivery_waits(session)
            restart_export_waits(session)
            with suppress(StoreUnavailable):
                breaker_operations.restart_waits(self.breaker_store.within(session))

    def due(self) -> set[str]:
        """The resolvers with something to do that may be called now."""
        with self.db.read() as session:
            names = due_resolvers(session)
        return Gate(self.breakers, self.registry).open_for(names)

    def runner(self) -> SagaRunner:
        return self.make_runner(
            crash_limit=self.settings.crash_limit,
            batch_size=self.settings.batch_size,
            backoff=self.backoff,
            policy=self.policy,
        )

    @cached_property
    def targets(self) -> Targets:
        if self.settings.notify is None:
            return Targets()
        targets = load_targets(self.settings.notify, public_url=self.settings.public_url)
        require_time({f"target {each.name}": each.timeout for each in targets}, self.settings.lease)
        return targets

    @cached_property
    def guard(self) -> Guard:
        """Where messages to targets that API keys register may go."""
        return Guard(self.settings.allow_private_targets or ())

    def _registered_targets(self, session: Session) -> Sequence[RegisteredTarget]:
        timeout = min(_TARGET_TIMEOUT, self.settings.lease / 3)
        return open_targets(session, self.keyring, self.guard, timeout=timeout)

    def deliverer(self) -> Deliverer:
        rules = Rules(
            max_attempts=self.policy.max_attempts,
            max_age=self.policy.max_age,
            backoff=self.backoff,
            on_undeliverable=_open_dead_letter,
            on_delivered=_resolve_dead_letter,
        )
        look_ups = LookUps(about_requests, senders_of, self._registered_targets)
        file = None if self.settings.notify is None else self.targets
        return Deliverer(file, self.db, rules, look_ups)

    def export_maker(self) -> ExportMaker:
        return ExportMaker(self.db, self.keyring, exported_trail)

    def tidy(self) -> None:
        """Delete what is no longer needed. The scheduler does this, and every `effaced drain`."""
        with self.db.begin() as session:
            delete_old_answers(session)
            delete_old_sandbox_requests(session)
            delete_old_messages(session)
            delete_policies_of_closed_requests(session)
            moves.delete_old(session, KEPT)
            outage_log.delete_old(session, KEPT)
            with suppress(StoreUnavailable):
                breaker_operations.prune_cooldowns(self.breaker_store.within(session))
        with self.db.begin() as session:
            delete_old_counters(session)
            close_refusals(session)
        for _ in range(_MOST_BATCHES):
            with self.db.begin() as session:
                if delete_old_attempts(session) < ATTEMPTS_BATCH:
                    break
        for _ in range(_MOST_BATCHES):
            with self.db.begin() as session:
                if delete_old_exports(session) < CHUNKS_BATCH:
                    break
        # By itself: a letter that is locked elsewhere holds nothing else up.
        with self.db.begin() as session:
            tidied = tidy_dead_letters(session)
        if any(tidied.values()):
            _log.info("dead_letters_tidied", **tidied)
        self.tidy_retentions()

    def tidy_retentions(self) -> None:
        """Bring the register of what is retained up to date."""
        for _ in range(_MOST_BATCHES):
            if not reassess_stale(self.db, self.keyring, self.retention):
                break

    def end_retentions(self, *, seconds: float | None = None) -> None:
        """Continue ending retentions, and begin to end those that are due if the settings say so."""
        on_schedule = self.settings.retention_erase == "on_schedule"
        until = None if seconds is None else clock.monotonic() + seconds
        if rows := self.ender.end_due(on_schedule=on_schedule, until=until):
            _log.info("retentions_ended", rows=rows)

    def report_absence_spikes(self) -> list[str]:
        """Raise alarms for systems that suddenly report nearly everybody as absent; their names."""
        with self.db.begin() as session:
            return report_absence_spikes(session)

    @cached_property
    def dead_letter_sla(self) -> Mapping[str, timedelta]:
        """How long dead letters may wait, by domain."""
        return sla_from_hours(self.settings.dead_letter_hours)

    def advance_redrives(self) -> int:
        """Advance every redrive as far as its pace allows until the next sweep.

        Returns how many there are.
        """
        ahead = max(AHEAD, timedelta(seconds=2 * self.settings.sweep_seconds))
        return advance_all(self.db, ahead=ahead)

    def require_ready(self) -> None:
        """Refuse to start with a database, a role or a configuration file that does not fit."""
        self._require_rights()
        self.require_schema()
        _ = self.plan, self.registry, self.targets, self.breaker_policies
        if self.settings.notify is not None:
            subscribe_file(self.db, self.targets)

    def require_schema(self) -> None:
        """Refuse to work on a schema that this code does not fit. Cheap: it looks every few seconds."""
        if self._schema.is_due:
            with self.db.read() as session:
                session.connection()  # whose transaction checks it

    def _require_rights(self) -> None:
        metadata = migrate.load_tables().metadata
        # Not by a session: its first look at the schema may already need a right that is missing.
        with self.db.engine.connect() as connection:
            require_rights(connection, metadata)
            if changeable := changeable_tables(connection, metadata):
                _log.warning(
                    "role_may_change_the_trail",
                    tables=changeable,
                    see="`effaced database roles`",
                )
        file = sqlite_file(self.settings.database_url)
        if file and open_to_others(file):
            _log.warning("database_file_open_to_others", file=str(file), see=f"chmod o= {file}*")


def _notice(made: Transition) -> Notice | None:
    """The notice of a transition: calls are blocked, or go out again. A failed trial has none."""
    if made.old is BreakerState.CLOSED and made.new is BreakerState.OPEN:
        return BreakerOpened(breaker=made.service_name, reason=made.reason, retry_at=made.retry_at)
    if made.old is not BreakerState.CLOSED and made.new is BreakerState.CLOSED:
        return BreakerClosed(breaker=made.service_name, reason=made.reason)
    return None


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
