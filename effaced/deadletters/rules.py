"""The rules of dead letters that need no database: states, decisions, waiting times, what to do first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from effaced.model import DeadLetterDomain, DeadLetterStatus, OutboxOperation, SubjectKey

PENDING, REVIEWING, REPLAYING, RESOLVED, REQUIRES_REVIEW, PERMANENTLY_FAILED, REJECTED, ARCHIVED = (
    DeadLetterStatus.PENDING,
    DeadLetterStatus.REVIEWING,
    DeadLetterStatus.REPLAYING,
    DeadLetterStatus.RESOLVED,
    DeadLetterStatus.REQUIRES_REVIEW,
    DeadLetterStatus.PERMANENTLY_FAILED,
    DeadLetterStatus.REJECTED,
    DeadLetterStatus.ARCHIVED,
)
# Somebody still has to decide.
OPEN = (PENDING, REVIEWING, REQUIRES_REVIEW)
# These hold up their request: giving up on a dead letter does not do the work it is about.
UNRESOLVED = (*OPEN, PERMANENTLY_FAILED)
# Nobody has to think of these any more.
SETTLED = (RESOLVED, REJECTED, ARCHIVED)
ACTIVE = tuple(each for each in DeadLetterStatus if each not in SETTLED)
FORCIBLE = (PENDING, REQUIRES_REVIEW)
# The changes of status: to each, from which ones. Only acquiring leads to `replaying`, only the end of the
# replay leads out of it, and nothing leads out of `archived` but another failure of the same work.
CHANGES: dict[DeadLetterStatus, tuple[DeadLetterStatus, ...]] = {
    REVIEWING: (PENDING, REQUIRES_REVIEW),
    RESOLVED: UNRESOLVED,
    REJECTED: UNRESOLVED,
    PERMANENTLY_FAILED: OPEN,
    PENDING: (REVIEWING, PERMANENTLY_FAILED, REJECTED),
    REQUIRES_REVIEW: (PENDING, REVIEWING),
    ARCHIVED: (RESOLVED, REJECTED),
}
# What a person may decide. The last two are for programs and the scheduler.
DECISIONS = {to: sources for to, sources in CHANGES.items() if to not in (REQUIRES_REVIEW, ARCHIVED)}
# How a dead letter was settled.
BY_HAND, REPLAYED, ATTESTED = "by_hand", "replayed", "attested"
SUPERSEDED, CANCELLED = "superseded", "cancelled"
# The columns that say how a dead letter was settled, for one that is not.
UNSETTLED_VALUES: Mapping[str, Any] = {
    "resolved_at": None,
    "resolved_by": None,
    "resolution": "",
    "resolution_note_id": None,
    "archived_at": None,
}
MAX_RETRIES = 2
PREVIOUS_TOTAL, FORCED, REOPENED = "previous_total_retries", "force_redrive_count", "reopened"
FAILED_REPLAYS, SAME_ERROR = "failed_replays", "same_error"
Marks = dict[str, Any]


def settable_from(to: DeadLetterStatus) -> tuple[DeadLetterStatus, ...]:
    """From which statuses a program may set this one.

    It may repeat the status that a dead letter has, to add what was not said yet; but not `replaying`, which
    belongs to whoever acquired it, nor `archived`.
    """
    sources = CHANGES.get(to, ())
    return (*sources, to) if sources and to is not ARCHIVED else sources


def after_failed_replay(retry_count: int, max_retries: int) -> DeadLetterStatus:
    """Pending again, or for review once the retries are used up."""
    return REQUIRES_REVIEW if retry_count >= max_retries else PENDING


def marks_after_force(marks: Mapping[str, Any] | None, retry_count: int) -> Marks:
    """A forced redrive starts the retry budget again; the marks keep how many retries there were."""
    marks = dict(marks or {})
    return marks | {
        PREVIOUS_TOTAL: marks.get(PREVIOUS_TOTAL, 0) + retry_count,
        FORCED: marks.get(FORCED, 0) + 1,
    }


def marks_after_reopening(marks: Mapping[str, Any] | None) -> Marks:
    """How the dead letter was settled before is in the audit trail."""
    return _incremented(marks, REOPENED)


def marks_after_failed_replay(marks: Mapping[str, Any] | None, *, same_error: bool) -> Marks:
    marks = _incremented(marks, FAILED_REPLAYS)
    return _incremented(marks, SAME_ERROR) if same_error else marks | {SAME_ERROR: 0}


def _incremented(marks: Mapping[str, Any] | None, name: str) -> Marks:
    return {**(marks or {}), name: (marks or {}).get(name, 0) + 1}


# How long a dead letter may stay open, by domain. Nothing of a request happens before its local execution,
# so that one is late sooner.
Sla = Mapping[str, timedelta]
DEFAULT_SLA = timedelta(hours=24)
SLA: Sla = {
    DeadLetterDomain.EXTERNAL_CALL: DEFAULT_SLA,
    DeadLetterDomain.VERIFICATION: DEFAULT_SLA,
    DeadLetterDomain.LOCAL_EXECUTION: timedelta(hours=4),
    DeadLetterDomain.ATTESTATION: timedelta(hours=72),
    DeadLetterDomain.MESSAGE: DEFAULT_SLA,
}


def sla_from_hours(hours: Mapping[DeadLetterDomain, float] | None) -> Sla:
    """The configured hours, and the defaults for every domain not named there."""
    return {**SLA, **{domain: timedelta(hours=each) for domain, each in (hours or {}).items()}}


def late_at(domain: str, created_at: datetime, sla: Sla) -> datetime:
    """When a dead letter becomes late, if it is still open then."""
    return created_at + sla.get(domain, DEFAULT_SLA)


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that failed for good. `error` is a class name, `code` a machine-readable word.

    `entry_id` names what failed: an entry, or for a message its delivery. A local execution has the request
    only.
    """

    domain: DeadLetterDomain
    request_id: UUID | None
    subject: SubjectKey | None
    error: str
    code: str
    entry_id: UUID | None = None
    resolver: str | None = None
    attempts: int = 0
    operation: OutboxOperation = OutboxOperation.ERASE
    tables: tuple[str, ...] = ()
    """Tables in which rows of the person were found although they should be gone."""

    def facts(self) -> dict[str, Any]:
        """What the dead letter's context keeps of it."""
        return {
            "domain": self.domain.value,
            "error": self.error,
            "code": self.code,
            "attempts": self.attempts,
            "tables": list(self.tables),
        }


# After this many failed replays one more retry will not help.
_ENOUGH_REPLAYS = 2
# The code of an execution that stopped because the row under the key may be somebody else's.
SUBJECT_CHANGED = "subject_changed"
_VALUES_GONE = (DeadLetterDomain.EXTERNAL_CALL, DeadLetterDomain.ATTESTATION)
_VENDOR_WAS_AWAY = frozenset({"attempts_exhausted", "max_age"})


def recommend(failure: Failure, marks: Mapping[str, Any] | None = None) -> str:
    """What to do first, from the failure and from what was tried before."""
    marks, domain = marks or {}, failure.domain
    rules = (
        # The corrected values are gone: a retry would do nothing and report success.
        (failure.operation is OutboxOperation.RECTIFY and domain in _VALUES_GONE, "reissue"),
        (domain is DeadLetterDomain.ATTESTATION, "do_by_hand_and_attest"),
        (failure.code == SUBJECT_CHANGED, "confirm_or_cancel"),
        (marks.get(FAILED_REPLAYS, 0) >= _ENOUGH_REPLAYS, "escalate"),
        (domain is DeadLetterDomain.VERIFICATION, "check_with_vendor"),
        (domain is DeadLetterDomain.LOCAL_EXECUTION, "fix_and_requeue"),
        (marks.get(SAME_ERROR, 0) > 0, "find_the_cause"),
        (domain is DeadLetterDomain.MESSAGE, "requeue_when_it_answers"),
        (failure.code in _VENDOR_WAS_AWAY, "requeue_when_vendor_is_back"),
    )
    return next((action for applies, action in rules if applies), "fix_and_requeue")
