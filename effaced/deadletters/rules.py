"""What may become of a dead letter: pure rules, the same for every store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from effaced.core.errors import Conflict, Problem, Refused
from effaced.model import DeadLetterDomain, DeadLetterStatus

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
# A letter is open while a person has to decide about it.
OPEN = (PENDING, REVIEWING, REQUIRES_REVIEW)
# What holds its request up: giving a letter up does not do what it is about.
UNDONE = (*OPEN, PERMANENTLY_FAILED)
# Nobody has to think of these any more.
SETTLED = (RESOLVED, REJECTED, ARCHIVED)
ACTIVE = tuple(each for each in DeadLetterStatus if each not in SETTLED)
FORCIBLE = (PENDING, REQUIRES_REVIEW)
# What a person may decide, and of which letters. A replay ends by itself; an archived letter stays.
DECISIONS: dict[DeadLetterStatus, tuple[DeadLetterStatus, ...]] = {
    REVIEWING: (PENDING, REQUIRES_REVIEW),
    RESOLVED: (PENDING, REVIEWING, REQUIRES_REVIEW, PERMANENTLY_FAILED),
    REJECTED: (PENDING, REVIEWING, REQUIRES_REVIEW, PERMANENTLY_FAILED),
    PERMANENTLY_FAILED: (PENDING, REVIEWING, REQUIRES_REVIEW),
    PENDING: (REVIEWING, PERMANENTLY_FAILED, REJECTED),
}
# How a dead letter was settled.
BY_HAND, REPLAYED, ATTESTED = "by_hand", "replayed", "attested"
SUPERSEDED, CANCELLED = "superseded", "cancelled"
# The columns that say how a dead letter was settled, of one that is not.
UNSETTLED_VALUES: Mapping[str, Any] = {
    "resolved_at": None,
    "resolved_by": None,
    "resolution": "",
    "resolution_note_id": None,
    "archived_at": None,
}
TWICE = "There is a dead letter of this domain for this entry already."
PREVIOUS_TOTAL, FORCED = "previous_total_retries", "force_redrive_count"
REOPENED = "reopened"


class BadChoice(Refused, ValueError):
    """The call can't mean this, so nothing was done."""


def status_of(word: str) -> DeadLetterStatus:
    return _word(DeadLetterStatus, word, "status")  # type: ignore[return-value]


def domain_of(word: str) -> DeadLetterDomain:
    return _word(DeadLetterDomain, word, "domain")  # type: ignore[return-value]


def after_failed_replay(retry_count: int, max_retries: int) -> DeadLetterStatus:
    """Back to the people; once the tries are used up a plain requeue does not take it any more."""
    return REQUIRES_REVIEW if retry_count >= max_retries else PENDING


def scarred(marks: Mapping[str, Any] | None, retry_count: int) -> dict[str, Any]:
    """What a forced redrive leaves behind: the budget starts again, the history does not."""
    marks = dict(marks or {})
    return marks | {
        PREVIOUS_TOTAL: marks.get(PREVIOUS_TOTAL, 0) + retry_count,
        FORCED: marks.get(FORCED, 0) + 1,
    }


def reopened(marks: Mapping[str, Any] | None) -> dict[str, Any]:
    """The marks of a settled dead letter that is open again: how it was settled is in the trail."""
    marks = dict(marks or {})
    return marks | {REOPENED: marks.get(REOPENED, 0) + 1}


def purge_choice(ids: object, older_than_days: int | None) -> None:
    """Refuses a purge that says two things at once, or a negative age."""
    if ids is not None and older_than_days is not None:
        said = "say ids or older_than_days, not both"
        raise BadChoice(f"Purge: {said}.", problems=[Problem("ids", said)])
    if older_than_days is not None and older_than_days < 0:
        raise BadChoice(
            "Purge: older_than_days can't be negative.",
            problems=[Problem("older_than_days", "must be 0 or more")],
        )


def evict_choice(count: int) -> None:
    if count < 0:
        said = "must be 0 or more"
        raise BadChoice(f"Evict: the count {said}.", problems=[Problem("count", said)])


def not_removable(count: int) -> BadChoice:
    said = (
        f"{count} of them {'is' if count == 1 else 'are'} not archived, or the work behind is not done; "
        "only archived dead letters over work that was done can be removed"
    )
    return BadChoice(f"Nothing was removed: {said}.", problems=[Problem("ids", said)])


def confirmed(expected: int, present: int) -> None:
    """Refuses if there are others now than were looked at."""
    if present != expected:
        said = f"is not what a purge would remove now, which is {present}"
        raise Conflict("Look at the preview again.", problems=[Problem("expected", said)])


def _word(words: type[DeadLetterStatus] | type[DeadLetterDomain], word: str, field: str) -> object:
    try:
        return words(word)
    except ValueError:
        said = f"must be one of {', '.join(words)}"
        raise BadChoice(f"The {field} {said}.", problems=[Problem(field, said)]) from None
