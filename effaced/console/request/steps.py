"""The three steps of a request on its page: your database, external systems, verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from effaced.console.call.page import CallView
from effaced.console.request.evidence import verified
from effaced.console.words import Station
from effaced.deadletters.read import DeadLetterLine
from effaced.model import DeadLetterDomain, OutboxStatus, RequestStatus
from effaced.outbox.read import EntryLine
from effaced.requests.plan import PlanLine
from effaced.requests.progress import BatchProgress
from effaced.requests.tables import Request

_OVER = (OutboxStatus.SUCCEEDED, Station.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Step:
    """One of the three steps of a request. `state` is a key of the template's table of words."""

    name: str
    icon: str
    state: str
    text: str


def database_step(
    request: Request,
    letters: tuple[DeadLetterLine, ...],
    progress: BatchProgress | None,
    done: tuple[PlanLine, ...],
) -> Step:
    state, text = "todo", "after approval"
    if request.duplicate_of:
        return Step("Your database", "database", "none", "done by the request that it is a duplicate of")
    if request.executed_at:
        changed = "changed in batches" if request.batch_counts else "changed in one transaction"
        kept = ", ".join(line.effect.table for line in done if line.kept)
        state, text = "done", f"{changed}; kept by law in {kept}" if kept else changed
    elif any(letter.domain is DeadLetterDomain.LOCAL_EXECUTION for letter in letters):
        so_far = f"after {progress.done:,} rows" if progress and progress.done else "nothing was changed"
        state, text = "blocked", f"failed; {so_far}"
    elif progress:
        state, text = "doing", "being changed in batches"
    elif request.status is RequestStatus.APPROVED:
        state, text = "doing", "changed next"
    elif request.closed_at:
        state, text = "none", "nothing was changed"
    return Step("Your database", "database", state, text)


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of an executed request, counted by state. `dead_lettered`: one has an open dead letter."""

    states: Counter[StrEnum]
    dead_lettered: bool

    @property
    def done(self) -> int:
        return sum(self.states[state] for state in _OVER)

    def has(self, state: StrEnum) -> bool:
        return self.states[state] > 0

    def only(self, *states: StrEnum) -> bool:
        return set(self.states) <= set(states)


# The first rule that holds says the step's state and what is added to "2 of 3 done".
_CALL_RULES: tuple[tuple[Callable[[_Calls], bool], str, str], ...] = (
    (lambda calls: calls.only(*_OVER), "done", ""),
    (
        lambda calls: calls.has(OutboxStatus.ABANDONED) and calls.dead_lettered,
        "blocked",
        ", {abandoned} abandoned",
    ),
    (lambda calls: calls.has(Station.PERSON), "waiting", ", waiting for a person"),
    (lambda calls: calls.has(Station.PAUSED), "waiting", ", paused"),
    (
        lambda calls: calls.only(*_OVER, OutboxStatus.SCHEDULED),
        "waiting",
        ", the rest waits for a vendor",
    ),
    (lambda _calls: True, "doing", ""),
)


def calls_step(request: Request, calls: Sequence[CallView], letters: Sequence[DeadLetterLine]) -> Step:
    if request.duplicate_of:
        return _external_systems("none", "called by the request that it is a duplicate of")
    if not request.executed_at and request.closed_at:
        return _external_systems("none", "no calls were made")
    if not request.executed_at:
        return _external_systems("todo", "after your database")
    if not calls:
        return _external_systems("none", "no external system knows the person")
    counted = _Calls(Counter(call.state for call in calls), any(letter.entry_id for letter in letters))
    state, addition = next((state, text) for holds, state, text in _CALL_RULES if holds(counted))
    abandoned = counted.states[OutboxStatus.ABANDONED]
    return _external_systems(
        state, f"{counted.done} of {len(calls)} done" + addition.format(abandoned=abandoned)
    )


def verification_step(request: Request, entries: Sequence[EntryLine]) -> Step:
    return Step("Verified", "eye", *verified(request, entries))


def _external_systems(state: str, text: str) -> Step:
    return Step("External systems", "globe", state, text)
