"""What a person should do first, from how something failed and what has been tried since."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from effaced.model import DeadLetterDomain, OutboxOperation, SubjectKey

# Failing again after this many tries by people is nothing that one more try will mend.
ENOUGH = 2
# The code of an execution that stopped because the row under the key may be somebody else's.
SUBJECT_CHANGED = "subject_changed"


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that ended badly. `error` is a class name, `code` a machine word.

    `entry_id` is what failed: an entry; of a message the delivery. A local execution has the request alone.
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
    """Where rows of the person are still found that should have gone."""


@dataclass(frozen=True, slots=True)
class History:
    """How often it failed again after a try by people, and how often in the same way as before."""

    failed_replays: int = 0
    same_error: int = 0


def recommend(failure: Failure, history: History = History()) -> str:  # noqa: B008 - frozen
    """One word; console and command line have a sentence for each."""
    if failure.operation is OutboxOperation.RECTIFY and failure.domain in (
        DeadLetterDomain.EXTERNAL_CALL,
        DeadLetterDomain.ATTESTATION,
    ):
        return "reissue"  # its corrections are gone: trying again would do nothing and report success
    if failure.domain is DeadLetterDomain.ATTESTATION:
        return "do_by_hand_and_attest"
    if failure.code == SUBJECT_CHANGED:
        return "confirm_or_cancel"
    if history.failed_replays >= ENOUGH:
        return "escalate"
    if failure.domain is DeadLetterDomain.VERIFICATION:
        return "check_with_vendor"
    if failure.domain is DeadLetterDomain.LOCAL_EXECUTION:
        return "fix_and_requeue"
    if history.same_error:
        return "find_the_cause"
    if failure.domain is DeadLetterDomain.MESSAGE:
        return "requeue_when_it_answers"
    if failure.code in {"attempts_exhausted", "max_age"}:
        return "requeue_when_vendor_is_back"
    return "fix_and_requeue"
