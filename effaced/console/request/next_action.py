"""What has to happen next to a request, and who does it, in one sentence."""

from __future__ import annotations

from effaced.audit.events import RequestSuperseded
from effaced.console.call.page import CallView
from effaced.console.request.evidence import evidence_words, next_verification
from effaced.console.request.timeline import Timeline
from effaced.console.words import NEXT_ACTIONS, Station
from effaced.deadletters.read import DeadLetterLine
from effaced.model import DeadLetterDomain, OutboxStatus, RequestKind, RequestStatus
from effaced.requests.progress import progress_of
from effaced.requests.tables import Request


def next_action(
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
        how_many = "A failed step needs" if len(letters) == 1 else f"{len(letters)} failed steps need"
        return f"{how_many} a decision: {_ways_out(letters)}."
    if request.status is RequestStatus.REVIEW:
        missing = request.approvals_needed - given
        return "An officer has to approve." if missing == 1 else f"{missing} officers have to approve."
    if request.status is RequestStatus.APPROVED:
        if progress_of(request):
            return "Nothing for you: very many rows are changed in batches, then the rest."
        return "Nothing for you: your database is changed next."
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
        return "do it by hand and attest, or retry for a new date"
    if all(letter.domain is DeadLetterDomain.VERIFICATION for letter in letters):
        return "verify again, or check that the data is gone and attest"
    return "retry once the cause is fixed"


def _next_call(calls: tuple[CallView, ...]) -> str:
    by = {state: _names(calls, state) for state in (Station.PERSON, Station.PAUSED, OutboxStatus.SCHEDULED)}
    if by[Station.PERSON]:
        return f"An officer has to do {by[Station.PERSON]} by hand and attest it below."
    if by[Station.PAUSED]:
        return f"{by[Station.PAUSED]} is paused: an officer has to resume it."
    open_ = [call for call in calls if call.state not in (OutboxStatus.SUCCEEDED, Station.SUPERSEDED)]
    if not open_:
        return next_verification([call.entry for call in calls])
    if all(call.state is OutboxStatus.SCHEDULED for call in open_):
        return f"Nothing for you: {by[OutboxStatus.SCHEDULED]} will delete the data at a later date."
    return "Nothing for you: the external systems are being called."


def _names(calls: tuple[CallView, ...], state: object) -> str:
    return ", ".join(sorted({call.entry.resolver for call in calls if call.state is state}))
