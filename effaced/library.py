"""What applications that embed effaced, and authors of resolvers, may rely on: docs/reference/library.md."""

from effaced.audit.append import Record
from effaced.audit.sink import AuditSink, DatabaseAuditSink
from effaced.breakers.cooldowns import CooldownStore
from effaced.breakers.layered.drift import DriftReconciler, get_drift_reconciler
from effaced.breakers.layered.shadow import ShadowLogger, get_shadow_logger
from effaced.breakers.listeners import BreakerListener
from effaced.breakers.model import (
    BreakerOpenError,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    Transition,
)
from effaced.breakers.open_store import open_store
from effaced.breakers.policy import BreakerPolicies, BreakerPolicy
from effaced.breakers.policy_file import load_policies
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.breakers.stores.memory import MemoryBreakerStore
from effaced.breakers.stores.redis import RedisBreakerStore
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core.config import load_settings
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.core.errors import (
    ConfigurationError,
    Conflict,
    EffacedError,
    Problem,
    Refused,
    ResolverError,
    SchemaMismatch,
)
from effaced.core.http_clients import http_client
from effaced.deadletters.data import DLQCompressedEntry, FailedOperationData
from effaced.deadletters.interface import FailedOperationRepository
from effaced.deadletters.memory import InMemoryFailedOperationRepository
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.embed import Effaced, Taken
from effaced.model import Correction, OutboxOperation, OutboxStatus, SubjectRef
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    AwaitsPerson,
    CredentialsRefused,
    Erased,
    Limits,
    Rectified,
    RectifyingResolver,
    Resolver,
    ResumingResolver,
    Retained,
    RetentionOnlyResolver,
    Scheduled,
    TransientFailure,
    VerifyingResolver,
)
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.resolvers.settings import Strict, validate
from effaced.retries.policy import BackoffPolicy, BackoffStrategy, RetryPolicy
from effaced.saga.abandoned_hook import AbandonedHook, AbandonedSignal
from effaced.saga.facade import Outbox, OutboxEntry, SqlStatusCountsSource, StatusCountsSource
from effaced.saga.runner import SagaRunner

__all__ = [
    "AbandonedHook",
    "AbandonedSignal",
    "AlreadyAbsent",
    "Answer",
    "AuditSink",
    "AwaitsPerson",
    "BackoffPolicy",
    "BackoffStrategy",
    "BreakerListener",
    "BreakerOpenError",
    "BreakerPolicies",
    "BreakerPolicy",
    "BreakerRegistry",
    "BreakerRole",
    "BreakerState",
    "CircuitBreakerStateData",
    "CircuitBreakerStateRepository",
    "ConfigurationError",
    "Conflict",
    "CooldownStore",
    "Correction",
    "CredentialsRefused",
    "DLQCompressedEntry",
    "Database",
    "DatabaseAuditSink",
    "DriftReconciler",
    "Effaced",
    "EffacedError",
    "Erased",
    "FailedOperationData",
    "FailedOperationRepository",
    "InMemoryFailedOperationRepository",
    "Keyring",
    "Limits",
    "MemoryBreakerStore",
    "Outbox",
    "OutboxEntry",
    "OutboxOperation",
    "OutboxStatus",
    "Problem",
    "Record",
    "Rectified",
    "RectifyingResolver",
    "RedisBreakerStore",
    "Refused",
    "Registered",
    "Resolver",
    "ResolverError",
    "ResolverRegistry",
    "ResumingResolver",
    "Retained",
    "RetentionOnlyResolver",
    "RetryPolicy",
    "SQLFailedOperationRepository",
    "SagaRunner",
    "Scheduled",
    "SchemaMismatch",
    "ShadowLogger",
    "SqlBreakerStore",
    "SqlStatusCountsSource",
    "StatusCountsSource",
    "Strict",
    "SubjectRef",
    "Taken",
    "TransientFailure",
    "Transition",
    "VerifyingResolver",
    "get_drift_reconciler",
    "get_shadow_logger",
    "http_client",
    "load_policies",
    "load_settings",
    "new_key",
    "open_store",
    "validate",
]
