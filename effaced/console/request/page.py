"""One request, put together for its page: state, clock, next action, stepper, entries, story."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from effaced.console.call.page import CallView, call_views
from effaced.console.current import SignedIn, by_hand, runtime
from effaced.console.request.done import done_to
from effaced.console.request.next_action import next_action
from effaced.console.request.plan import Plan, plan_of
from effaced.console.request.steps import Step, calls_step, database_step, verification_step
from effaced.console.request.timeline import Timeline, timeline
from effaced.console.words import Station
from effaced.core import clock
from effaced.deadletters.read import DeadLetterLine, unresolved_dead_letters
from effaced.model import UNEXECUTED, RequestKind, RequestStatus
from effaced.outbox.read import entries_of
from effaced.requests.approve import why_not_approve
from effaced.requests.plan import PlanLine
from effaced.requests.progress import BatchProgress, progress_of
from effaced.requests.read import RequestLine, approvals_of, duplicates_of, line_of
from effaced.requests.tables import Request

MOST_BY_HAND = 10


@dataclass(frozen=True, slots=True)
class RequestView:
    """All that the page shows."""

    line: RequestLine
    datamap_hash: str
    executed_at: datetime | None
    approvals_given: int
    approvals_needed: int
    fields: tuple[str, ...]
    may_approve: bool
    why_not: str | None
    calls: tuple[CallView, ...]
    letters: tuple[DeadLetterLine, ...]
    stepper: tuple[Step, ...]
    next_action: str
    story: Timeline
    plan: Plan | None
    done: tuple[PlanLine, ...]
    progress: BatchProgress | None
    duplicates: tuple[str, ...]
    metadata: tuple[tuple[str, str], ...]
    """What its API key has attached, until the request is closed."""
    version: str

    @property
    def live(self) -> bool:
        """Whether anything can still happen without a person."""
        return self.line.closed_at is None

    @property
    def ahead(self) -> bool:
        """Whether your database is unchanged, so that a preview can be shown."""
        return _ahead(self.line, self.progress)

    @property
    def corrects(self) -> bool:
        return self.line.kind is RequestKind.RECTIFICATION

    @property
    def hands(self) -> tuple[CallView, ...]:
        """Calls that a person can do by hand; those that wait for one first."""
        open_ = [call for call in self.calls if call.for_a_person]
        return tuple(sorted(open_, key=lambda call: call.state is not Station.PERSON))

    @property
    def hands_version(self) -> str:
        """Changes when other calls are to be done by hand. What is being typed there is left alone else."""
        return _digest([(call.entry.entry_id, call.state) for call in self.hands])


def view_of(
    session: Session, request: Request, officer: SignedIn, *, with_plan: bool, with_samples: bool = False
) -> RequestView:
    entries = tuple(entries_of(session, request.id))
    calls = call_views(session, entries)
    letters = tuple(unresolved_dead_letters(session, [request.id], runtime().dead_letter_sla))
    story = timeline(session, runtime().keyring, runtime().settings.zone, request.id)
    given = approvals_of(session, request.id)
    approved_by = {approval.officer_id for approval in given}
    why_not = why_not_approve(request, officer.id, officer.role, approved_by)
    progress = progress_of(request)
    line = line_of(session, request, by_hand())
    done = done_to(session, request.id) if request.executed_at else ()
    stepper = (
        database_step(request, letters, progress, done),
        calls_step(request, calls, letters),
        verification_step(request, entries),
    )
    return RequestView(
        line=line,
        datamap_hash=request.datamap_hash,
        executed_at=request.executed_at,
        approvals_given=len(given),
        approvals_needed=request.approvals_needed,
        fields=tuple(request.correction_fields or ()),
        may_approve=request.status is RequestStatus.REVIEW and why_not is None,
        why_not=why_not if request.status is RequestStatus.REVIEW else None,
        calls=calls,
        letters=letters,
        stepper=stepper,
        next_action=next_action(request, calls, letters, len(given), line.duplicate_of, story),
        story=story,
        plan=plan_of(session, request, with_samples=with_samples)
        if with_plan and _ahead(line, progress)
        else None,
        done=done,
        progress=progress,
        duplicates=duplicates_of(session, request.id),
        metadata=tuple(sorted((request.metadata_values or {}).items())),
        version=_version(request, calls, story),
    )


def _ahead(line: RequestLine, progress: BatchProgress | None) -> bool:
    return line.status in UNEXECUTED and line.duplicate_of is None and not progress


def _version(request: Request, calls: tuple[CallView, ...], story: Timeline) -> str:
    """Changes when the page would; and each minute, because it says "3 minutes ago"."""
    minute = clock.now().replace(second=0, microsecond=0)
    return _digest(
        (
            (request.status, request.duplicate_of, request.batch_counts, calls),
            (len(story.moments), story.moments[-1:], minute),
        )
    )


def _digest(parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
