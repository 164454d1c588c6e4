"""What applications that embed effaced, and authors of resolvers, may rely on: docs/reference/library.md."""

from effaced.audit.append import Record
from effaced.audit.sink import AuditSink, DatabaseAuditSink
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
from effaced.saga.facade import Outbox, OutboxEntry, SqlStatusCountsSource, StatusCountsSource
from effaced.saga.runner import SagaRunner
from effaced.saga.tell import AbandonedHook, AbandonedSignal

__all__ = [
    "AbandonedHook",
    "AbandonedSignal",
    "AlreadyAbsent",
    "Answer",
    "AuditSink",
    "AwaitsPerson",
    "BackoffPolicy",
    "BackoffStrategy",
    "ConfigurationError",
    "Conflict",
    "Correction",
    "CredentialsRefused",
    "DLQCompressedEntry",
    "Database",
    "DatabaseAuditSink",
    "Effaced",
    "EffacedError",
    "Erased",
    "FailedOperationData",
    "FailedOperationRepository",
    "InMemoryFailedOperationRepository",
    "Keyring",
    "Limits",
    "Outbox",
    "OutboxEntry",
    "OutboxOperation",
    "OutboxStatus",
    "Problem",
    "Record",
    "Rectified",
    "RectifyingResolver",
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
    "SqlStatusCountsSource",
    "StatusCountsSource",
    "Strict",
    "SubjectRef",
    "Taken",
    "TransientFailure",
    "VerifyingResolver",
    "http_client",
    "load_settings",
    "new_key",
    "validate",
]
