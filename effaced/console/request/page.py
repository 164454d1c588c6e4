"""One request, put together for its page: state, clock, next action, stepper, entries, story."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from effaced.audit.events import RequestSuperseded
from effaced.console.call.page import CallView, call_views
from effaced.console.current import SignedIn, by_hand, runtime
from effaced.console.request.done import done_to
from effaced.console.request.evidence import evidence_words, next_verification, verified
from effaced.console.request.plan import Plan, PlanLine, plan_of
from effaced.console.request.timeline import Timeline, timeline
from effaced.console.words import NEXT_ACTIONS, Station
from effaced.core import clock
from effaced.deadletters.read import DeadLetterLine, unresolved_dead_letters
from effaced.model import UNEXECUTED, DeadLetterDomain, OutboxStatus, RequestKind, RequestStatus
from effaced.outbox.read import entries_of
from effaced.requests.approve import why_not_approve
from effaced.requests.progress import BatchProgress, progress_of
from effaced.requests.read import RequestLine, approvals_of, duplicates_of, line_of
from effaced.requests.tables import Request

MOST_BY_HAND = 10


@dataclass(frozen=True, slots=True)
class Step:
    """One of the three stations.

    `state` is todo, doing, waiting, done, partly, unchecked, none or blocked.
    """

    name: str
    icon: str
    state: str
    text: str


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
    version: str

    @property
    def live(self) -> bool:
        """Whether anything can still happen without a person."""
        return self.line.closed_at is None

    @property
    def ahead(self) -> bool:
        """Whether the own database is still as it was, so that one can say what would happen to it."""
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
    letters = tuple(unresolved_dead_letters(session, [request.id], runtime().letter_sla))
    story = timeline(session, runtime().keyring, runtime().settings.zone, request.id)
    given = approvals_of(session, request.id)
    approved_by = {approval.officer_id for approval in given}
    why_not = why_not_approve(request, officer.id, officer.role, approved_by)
    progress = progress_of(request)
    line = line_of(session, request, by_hand())
    done = done_to(session, request.id) if request.executed_at else ()
    stepper = (
        _local(request, letters, progress, done),
        _external(request, calls, letters),
        Step("Verified", "eye", *verified(request, entries)),
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
        next_action=_next_action(request, calls, letters, len(given), line.duplicate_of, story),
        story=story,
        plan=plan_of(session, request, with_samples=with_samples)
        if with_plan and _ahead(line, progress)
        else None,
        done=done,
        progress=progress,
        duplicates=duplicates_of(session, request.id),
        version=_version(request, calls, story),
    )


def _local(
    request: Request,
    letters: tuple[DeadLetterLine, ...],
    progress: BatchProgress | None,
    done: tuple[PlanLine, ...],
) -> Step:
    state, text = "todo", "after approval"
    if request.duplicate_of:
        return Step("Own database", "database", "none", "done by the request that it is a duplicate of")
    if request.executed_at:
        changed = "changed in batches" if request.worked_off else "changed in one transaction"
        kept = ", ".join(line.effect.table for line in done if line.kept)
        state, text = "done", f"{changed}; kept by law in {kept}" if kept else changed
    elif any(letter.domain is DeadLetterDomain.LOCAL_EXECUTION for letter in letters):
        so_far = f"after {progress.done:,} rows" if progress and progress.done else "nothing was changed"
        state, text = "blocked", f"failed; {so_far}"
    elif progress:
        state, text = "doing", "worked off in batches"
    elif request.status is RequestStatus.APPROVED:
        state, text = "doing", "about to be changed"
    elif request.closed_at:
        state, text = "none", "nothing was changed"
    return Step("Own database", "database", state, text)


def _external(request: Request, calls: tuple[CallView, ...], letters: tuple[DeadLetterLine, ...]) -> Step:
    over = (OutboxStatus.SUCCEEDED, Station.SUPERSEDED)
    done = sum(1 for call in calls if call.state in over)
    count = f"{done} of {len(calls)} done"
    states = {call.state for call in calls}
    if request.duplicate_of:
        state, text = "none", "called by the request that it is a duplicate of"
    elif not request.executed_at:
        state, text = (
            ("none", "no calls were made") if request.closed_at else ("todo", "after the own database")
        )
    elif not calls:
        state, text = "none", "no external system knows the person"
    elif done == len(calls):
        state, text = "done", count
    elif OutboxStatus.ABANDONED in states and any(letter.entry_id for letter in letters):
        abandoned = sum(1 for call in calls if call.state is OutboxStatus.ABANDONED)
        state, text = "blocked", f"{count}, {abandoned} abandoned"
    elif Station.PERSON in states:
        state, text = "waiting", f"{count}, waiting for a person"
    elif Station.PAUSED in states:
        state, text = "waiting", f"{count}, paused"
    elif states <= {*over, OutboxStatus.SCHEDULED}:
        state, text = "waiting", f"{count}, the rest waits at a vendor"
    else:
        state, text = "doing", count
    return Step("External systems", "globe", state, text)


def _next_action(
    request: Request,
    calls: tuple[CallView, ...],
    letters: tuple[DeadLetterLine, ...],
    given: int,
    original: str | None,
    story: Timeline,
) -> str:
    """The one thing that has to happen next, and who does it."""
    if original:
        return _next_of_duplicate(request, original)
    if letters:
        how_many = "A dead letter waits" if len(letters) == 1 else f"{len(letters)} dead letters wait"
        return f"{how_many} for a decision: {_ways_out(letters)}."
    if request.status is RequestStatus.REVIEW:
        missing = request.approvals_needed - given
        return "An officer has to approve." if missing == 1 else f"{missing} officers have to approve."
    if request.status is RequestStatus.APPROVED:
        if progress_of(request):
            return "Nothing for you: very many rows are worked off, and then the rest is changed."
        return "Nothing for you: the own database is changed next."
    if request.status is RequestStatus.RUNNING:
        return _next_call(calls)
    if request.status is RequestStatus.COMPLETED:
        return _nothing_left(request, calls)
    if any(moment.type == RequestSuperseded.type for moment in story.moments):
        return "Nothing: the person was erased, so nothing is left to correct."
    return NEXT_ACTIONS[request.status]


def _next_of_duplicate(request: Request, original: str) -> str:
    if request.closed_at:
        return f"Nothing: it was completed together with {original}."
    return (
        f"Nothing for you here: it is completed when {original} is, and reviewed if {original} is cancelled."
    )


def _ahead(line: RequestLine, progress: BatchProgress | None) -> bool:
    return line.status in UNEXECUTED and line.duplicate_of is None and not progress


def _nothing_left(request: Request, calls: tuple[CallView, ...]) -> str:
    if not calls:
        return "Nothing: no external system had to be called."
    if request.kind is RequestKind.RECTIFICATION:
        return "Nothing: every external call has succeeded."
    return f"Nothing: every external call has succeeded ({evidence_words(call.entry for call in calls)})."


def _ways_out(letters: tuple[DeadLetterLine, ...]) -> str:
    if all(letter.recommended_action == "reissue" for letter in letters):
        return "send the correction again, or correct it by hand and attest"
    if all(letter.recommended_action == "confirm_or_cancel" for letter in letters):
        return "confirm that the row is still the person's, or cancel the request"
    if all(letter.domain is DeadLetterDomain.ATTESTATION for letter in letters):
        return "do it by hand and attest, or requeue for a new date"
    if all(letter.domain is DeadLetterDomain.VERIFICATION for letter in letters):
        return "look again, or see for yourself that it is gone and attest"
    return "requeue, once the cause is gone"


def _next_call(calls: tuple[CallView, ...]) -> str:
    by = {state: _names(calls, state) for state in (Station.PERSON, Station.PAUSED, OutboxStatus.SCHEDULED)}
    if by[Station.PERSON]:
        return f"Somebody has to see to {by[Station.PERSON]} by hand, and attest it below."
    if by[Station.PAUSED]:
        return f"{by[Station.PAUSED]} is paused: somebody has to resume it."
    open_ = [call for call in calls if call.state not in (OutboxStatus.SUCCEEDED, Station.SUPERSEDED)]
    if not open_:
        return next_verification([call.entry for call in calls])
    if all(call.state is OutboxStatus.SCHEDULED for call in open_):
        return f"Nothing for you: {by[OutboxStatus.SCHEDULED]} will let the data go at a later date."
    return "Nothing for you: the external systems are being called."


def _names(calls: tuple[CallView, ...], state: object) -> str:
    return ", ".join(sorted({call.entry.resolver for call in calls if call.state is state}))


def _version(request: Request, calls: tuple[CallView, ...], story: Timeline) -> str:
    """Changes when the page would; and each minute, because it says "3 minutes ago"."""
    minute = clock.now().replace(second=0, microsecond=0)
    return _digest(
        (
            (request.status, request.duplicate_of, request.worked_off, calls),
            (len(story.moments), story.moments[-1:], minute),
        )
    )


def _digest(parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
