"""Approving requests and attesting calls, in the name of the officer whom the API key belongs to."""

from __future__ import annotations

from effaced.accounts.officers import lock_deciding_officer
from effaced.accounts.scopes import Scope
from effaced.accounts.tables import Officer
from effaced.api.decisions.models import ApprovalBody, AttestationBody
from effaced.api.operations.call import Call
from effaced.api.operations.declare import Routes
from effaced.api.operations.problems import FORBIDDEN, ApiProblem
from effaced.api.path_id import read_path_id
from effaced.api.requests import models
from effaced.api.requests.execute import execute
from effaced.api.requests.find import find_request
from effaced.api.requests.show import show_entry, show_request
from effaced.core.errors import Conflict, NotFound
from effaced.model import RequestStatus
from effaced.outbox.read import find_entry
from effaced.requests.approve import approve
from effaced.triage.attest import attest

routes = Routes(
    "Decisions", "/api/v1", about="What officers decide, through API keys that act in their names."
)
_NO_CALL = "There is no such external call."


@routes.post(
    "/requests/<request_id>/approve",
    scope=Scope.DECIDE_APPROVE,
    secrets=("metadata",),  # which is erased when the request is closed
)
def approve_request(call: Call, request_id: str, body: ApprovalBody) -> models.Request:
    """Approve a request in the name of the key's officer.

    The rules are the console's: nobody approves what they entered, nor twice, through however many keys. The
    last approval that is needed makes the request `approved`; it is executed before the answer leaves, or
    seconds later.
    """
    officer = _officer(call)
    found = find_request(call, request_id)
    runtime = call.runtime
    if body.datamap_hash is not None and body.datamap_hash != runtime.datamap.hash:
        raise Conflict("The data map has changed. See what it would do now, and approve again.")
    request = approve(
        call.session, call.keyring, found.id, by=officer, reason=body.reason, through=call.caller.key.id
    )
    if request.status is RequestStatus.APPROVED:
        call.after_commit(lambda: execute(runtime, request.id))
    return show_request(call.session, request, reveal=True)


@routes.post("/entries/<entry_id>/attest", scope=Scope.DECIDE_ATTEST)
def attest_entry(call: Call, entry_id: str, body: AttestationBody) -> models.Entry:
    """Attest, in the name of the key's officer, that a call was made by hand, or that the data is gone.

    It counts for a call that was abandoned or waits for a person, and for an erasure that no read-back has
    confirmed. The request completes if this was the last that it waited for.
    """
    officer = _officer(call)
    named = read_path_id(entry_id, _NO_CALL)
    attest(
        call.session,
        call.keyring,
        named,
        actor=f"officer:{officer.id}",
        reason=body.reason,
        through=call.caller.key.id,
    )
    entry = find_entry(call.session, named)
    if entry is None:  # `attest` has found it
        raise NotFound(_NO_CALL)
    return show_entry(entry)


def _officer(call: Call) -> Officer:
    """The officer, who stays one who may decide until the transaction ends."""
    named = call.caller.officer_id
    officer = lock_deciding_officer(call.session, named) if named is not None else None
    if officer is None:
        raise ApiProblem(FORBIDDEN, "This API key has no officer who may decide.")
    return officer
