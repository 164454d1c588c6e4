"""One request, put together for its page: state, clock, next action, stepper, entries, story."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from effaced import clock
from effaced.console.current import SignedIn, runtime
from effaced.console.timeline import Timeline, timeline
from effaced.datamap.erase import TableEffect, dry_run
from effaced.datamap.subject import find_subject
from effaced.deadletters.read import DeadLetterLine, open_letters_of
from effaced.errors import ConfigurationError, NotFound, Unavailable
from effaced.model import DeadLetterDomain, OutboxStatus, RequestStatus, Verification
from effaced.outbox.read import EntryLine, entries_of
from effaced.requests.read import RequestLine, approvals_of, line_of
from effaced.requests.subject import open_subject
from effaced.requests.tables import Request

PLANNED = (
    RequestStatus.RECEIVED,
    RequestStatus.IDENTITY_CHECK,
    RequestStatus.REVIEW,
    RequestStatus.APPROVED,
    RequestStatus.ON_HOLD,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One of the three stations. `state` is todo, doing, waiting, done, none or blocked."""

    name: str
    icon: str
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Columns of one table that stay for the same reason."""

    columns: tuple[str, ...]
    basis: str
    until: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What executing would do now; or why that can't be said."""

    effects: tuple[TableEffect, ...] = ()
    calls: tuple[str, ...] = ()
    unknown_to: tuple[str, ...] = ()
    problem: str | None = None

    @staticmethod
    def kept(effect: TableEffect) -> list[Kept]:
        reasons: dict[tuple[str, str | None], list[str]] = {}
        for each in effect.retained:
            reasons.setdefault((each.basis, each.until), []).append(each.column)
        return [Kept(tuple(columns), *reason) for reason, columns in reasons.items()]

    @property
    def rows(self) -> int:
        return sum(effect.changed for effect in self.effects)

    @property
    def tables(self) -> int:
        return sum(1 for effect in self.effects if effect.changed)


@dataclass(frozen=True, slots=True)
class RequestView:
    """All that the page shows."""

    line: RequestLine
    datamap_hash: str
    executed_at: datetime | None
    approvals_given: int
    approvals_needed: int
    max_attempts: int
    may_approve: bool
    why_not: str | None
    entries: tuple[EntryLine, ...]
    letters: tuple[DeadLetterLine, ...]
    stepper: tuple[Step, ...]
    next_action: str
    story: Timeline
    plan: Plan | None
    version: str

    @property
    def live(self) -> bool:
        """Whether anything can still happen without a person."""
        waits_for_read_back = any(entry.verification is Verification.DUE for entry in self.entries)
        return self.line.closed_at is None or waits_for_read_back


def view_of(session: Session, request: Request, officer: SignedIn, *, with_plan: bool) -> RequestView:
    line = line_of(session, request)
    entries = tuple(entries_of(session, request.id))
    letters = tuple(open_letters_of(session, [request.id]))
    story = timeline(session, runtime().keyring, runtime().settings.zone, request.id)
    given = approvals_of(session, request.id)
    why_not = _why_not(request, officer, {approval.officer_id for approval in given})
    stepper = (_local(request, letters), _external(request, entries, letters), _verified(request, entries))
    return RequestView(
        line=line,
        datamap_hash=request.datamap_hash,
        executed_at=request.executed_at,
        approvals_given=len(given),
        approvals_needed=request.approvals_needed,
        max_attempts=runtime().settings.max_attempts,
        may_approve=request.status is RequestStatus.REVIEW and why_not is None,
        why_not=why_not if request.status is RequestStatus.REVIEW else None,
        entries=entries,
        letters=letters,
        stepper=stepper,
        next_action=_next_action(request, entries, letters, len(given)),
        story=story,
        plan=_plan(session, request) if with_plan and request.status in PLANNED else None,
        version=_version(request, entries, story),
    )


def _why_not(request: Request, officer: SignedIn, approved_by: set[UUID]) -> str | None:
    if not officer.can_act:
        return "Your role reads everything and changes nothing."
    if officer.id == request.entered_by:
        return "You entered this request, so somebody else has to approve it."
    if officer.id in approved_by:
        return "You have approved this request. The next approval is another officer's."
    return None


def _plan(session: Session, request: Request) -> Plan:
    here = runtime()
    try:
        subject_id = open_subject(here.keyring, request)
        if subject_id is None:
            return Plan(problem="The request no longer knows whom it is about.")
        subject = find_subject(session, here.plan, subject_id)
        refs = subject.refs if subject else {}
        return Plan(
            effects=tuple(dry_run(session, here.plan, subject_id)),
            calls=tuple(each.name for each in here.registry if each.ref in refs),
            unknown_to=tuple(each.name for each in here.registry if each.ref not in refs),
        )
    except (NotFound, Unavailable) as error:
        return Plan(problem=error.message)
    except ConfigurationError:
        return Plan(problem="The data map or the resolver file can't be used right now; the log says why.")


def _local(request: Request, letters: tuple[DeadLetterLine, ...]) -> Step:
    state, text = "todo", "after approval"
    if request.executed_at:
        state, text = "done", "changed in one transaction"
    elif any(letter.domain is DeadLetterDomain.LOCAL_EXECUTION for letter in letters):
        state, text = "blocked", "failed; nothing was changed"
    elif request.status is RequestStatus.APPROVED:
        state, text = "doing", "about to be changed"
    elif request.closed_at:
        state, text = "none", "nothing was changed"
    return Step("Own database", "database", state, text)


def _external(request: Request, entries: tuple[EntryLine, ...], letters: tuple[DeadLetterLine, ...]) -> Step:
    done = sum(1 for entry in entries if entry.status is OutboxStatus.SUCCEEDED)
    count = f"{done} of {len(entries)} done"
    statuses = {entry.status for entry in entries}
    if not request.executed_at:
        state, text = (
            ("none", "no calls were made") if request.closed_at else ("todo", "after the own database")
        )
    elif not entries:
        state, text = "none", "no external system knows the person"
    elif done == len(entries):
        state, text = "done", count
    elif OutboxStatus.ABANDONED in statuses and any(letter.entry_id for letter in letters):
        state, text = "blocked", f"{count}, {_abandoned(entries)} abandoned"
    elif statuses <= {OutboxStatus.SUCCEEDED, OutboxStatus.SCHEDULED}:
        state, text = "waiting", f"{count}, the rest waits at a vendor"
    else:
        state, text = "doing", count
    return Step("External systems", "globe", state, text)


def _abandoned(entries: tuple[EntryLine, ...]) -> int:
    return sum(1 for entry in entries if entry.status is OutboxStatus.ABANDONED)


def _verified(request: Request, entries: tuple[EntryLine, ...]) -> Step:
    by = {outcome: sum(1 for entry in entries if entry.verification is outcome) for outcome in Verification}
    told = ", ".join(
        f"{number} {word}"
        for number, word in (
            (by[Verification.CONFIRMED], "confirmed"),
            (by[Verification.STILL_PRESENT], "still present"),
            (by[Verification.DUE], "to be looked at"),
        )
        if number
    )
    if by[Verification.STILL_PRESENT]:
        state = "blocked"
    elif by[Verification.DUE]:
        state = "doing"
    elif request.closed_at:
        state = "done" if told else "none"
    else:
        state = "doing" if told else "todo"
    return Step("Verified", "eye", state, told or _nothing_verified(state))


def _nothing_verified(state: str) -> str:
    return "no system could be asked" if state == "none" else "after the calls"


def _next_action(
    request: Request, entries: tuple[EntryLine, ...], letters: tuple[DeadLetterLine, ...], given: int
) -> str:
    """The one thing that has to happen next, and who does it."""
    if letters:
        how_many = "A dead letter waits" if len(letters) == 1 else f"{len(letters)} dead letters wait"
        return f"{how_many} for a decision: requeue, once the cause is gone."
    if request.status is RequestStatus.REVIEW:
        missing = request.approvals_needed - given
        return "An officer has to approve." if missing == 1 else f"{missing} officers have to approve."
    if request.status is RequestStatus.APPROVED:
        return "Nothing for you: the own database is changed next."
    if request.status is RequestStatus.RUNNING:
        return _next_call(entries)
    if any(entry.verification is Verification.DUE for entry in entries):
        return "Nothing for you: some systems are asked once more whether the data is gone."
    return {
        RequestStatus.RECEIVED: "Nothing for you: the request is being taken in.",
        RequestStatus.IDENTITY_CHECK: "The person's identity has to be checked.",
        RequestStatus.ON_HOLD: "A legal hold has to end or be lifted.",
        RequestStatus.COMPLETED: "Nothing: every external call has succeeded.",
        RequestStatus.DENIED: "Nothing: the request was denied.",
        RequestStatus.CANCELLED: "Nothing: the request was cancelled.",
    }[request.status]


def _next_call(entries: tuple[EntryLine, ...]) -> str:
    open_ = [entry for entry in entries if entry.status is not OutboxStatus.SUCCEEDED]
    if open_ and all(entry.status is OutboxStatus.SCHEDULED for entry in open_):
        names = ", ".join(sorted({entry.resolver for entry in open_}))
        return f"Nothing for you: {names} will let the data go at a later date."
    return "Nothing for you: the external systems are being called."


def _version(request: Request, entries: tuple[EntryLine, ...], story: Timeline) -> str:
    """Changes when the page would; and each minute, because it says "3 minutes ago"."""
    parts = (
        request.status,
        entries,
        len(story.moments),
        story.moments[-1:],
        clock.now().replace(second=0, microsecond=0),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
