"""What applications that embed effaced, and authors of resolvers, may rely on: docs/reference/library.md."""

from effaced.audit.append import Record
from effaced.audit.sink import AuditSink, DatabaseAuditSink
from effaced.crypto import Keyring, new_key
from effaced.deadletters.data import DLQCompressedEntry, FailedOperationData
from effaced.deadletters.interface import FailedOperationRepository
from effaced.deadletters.memory import InMemoryFailedOperationRepository
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.embed import Effaced, Taken
from effaced.errors import ConfigurationError, Conflict, EffacedError, Refused, ResolverError, SchemaMismatch
from effaced.model import Correction, OutboxOperation, OutboxStatus, SubjectRef
from effaced.resolvers.protocols import (
    AlreadyAbsent,
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
from effaced.retries.policy import BackoffPolicy, BackoffStrategy, RetryPolicy
from effaced.saga.facade import Outbox, OutboxEntry, SqlStatusCountsSource, StatusCountsSource
from effaced.saga.runner import SagaRunner
from effaced.saga.tell import AbandonedHook, AbandonedSignal

__all__ = [
    "AbandonedHook",
    "AbandonedSignal",
    "AlreadyAbsent",
    "AuditSink",
    "AwaitsPerson",
    "BackoffPolicy",
    "BackoffStrategy",
    "ConfigurationError",
    "Conflict",
    "Correction",
    "CredentialsRefused",
    "DLQCompressedEntry",
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
    "SubjectRef",
    "Taken",
    "TransientFailure",
    "VerifyingResolver",
    "new_key",
]
