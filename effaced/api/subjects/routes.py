"""People: finding the key that stands for one, and the requests under it. No identifier is in any URL."""

from __future__ import annotations

from effaced.accounts.scopes import Scope
from effaced.api.models import PageQuery
from effaced.api.operations.call import Call
from effaced.api.operations.declare import Routes
from effaced.api.requests.show import show_requests
from effaced.api.subject_key import parse_subject_key, write_subject_key
from effaced.api.subjects import models
from effaced.audit.append import append_one
from effaced.audit.events import SubjectSearched
from effaced.core import clock
from effaced.core.errors import NotFound, Problem, Refused
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.requests.identifiers import SUBJECT_ID
from effaced.requests.read import RequestFilter, find_page
from effaced.requests.subjects import SubjectLine, find_by_id, find_by_identifier

routes = Routes("Subjects", "/api/v1/subjects", about="People, by keyed hashes that stand for them.")
_READ = (Scope.REQUESTS_READ, Scope.DECIDE_READ)


@routes.post("/search", scope=_READ)
def search_subjects(call: Call, body: models.SubjectSearch) -> models.SubjectList:
    """Find the keys of a person by what is known of them. The trail says that somebody was looked for.

    A key finds people for whom it has sent requests, one with `decide:read` everybody for whom there are any.
    Somebody unknown looks the same as somebody of another key.
    """
    found = _find(call, body)
    caller = call.caller
    # What an officer's key may see of everybody is their looking.
    officer = f"officer:{caller.officer_id}" if caller.sees_all and caller.officer_id else None
    event = SubjectSearched(
        kind=body.identifier or SUBJECT_ID,
        found=sum(each.requests for each in found),
        api_key_id=caller.key.id if officer else None,
    )
    append_one(call.session, event, actor=officer or caller.actor)
    return models.SubjectList(
        data=[
            models.Subject(
                key=write_subject_key(each.key),
                requests=each.requests,
                open=each.open,
                last_received_at=each.last_received_at,
            )
            for each in found
        ]
    )


@routes.get("/<subject_key>", scope=_READ)
def get_subject(call: Call, subject_key: str, query: PageQuery) -> models.SubjectHistory:
    """The requests of one person, the latest due date first: those that this key has sent.

    A key with `decide:read` sees everybody's.
    """
    key, sees_all = parse_subject_key(subject_key), call.caller.sees_all
    if key is None:
        raise NotFound(_UNKNOWN)
    page = find_page(
        call.session,
        RequestFilter(subject=key, api_key_id=None if sees_all else call.caller.key.id),
        clock.now(),
        latest_first=True,
        after=query.after,
        limit=query.limit,
    )
    if not page.items and query.after is None:
        raise NotFound(_UNKNOWN)
    shown = show_requests(call.session, page.items, reveal=sees_all)
    return models.SubjectHistory(key=write_subject_key(key), data=shown, next=page.next)


_UNKNOWN = "There are no requests under this key that the caller may know of."


def _find(call: Call, body: models.SubjectSearch) -> list[SubjectLine]:
    session, keyring = call.session, call.keyring
    sent_by = None if call.caller.sees_all else call.caller.key.id
    _require_one_way(body)
    if body.id is not None:
        plan = _plan_of(call.runtime.plan_on(session), body.type)
        return find_by_id(session, keyring, plan, body.id, sent_by=sent_by)
    kind, value = body.identifier or "", body.value or ""
    known = call.runtime.datamap.identifier_kinds
    if kind not in known:
        said = f"must be one of {', '.join(known)}" if known else "can't be used: the data map declares none"
        problem = Problem("identifier", said, code="not_allowed")
        raise Refused("The identifier is not known.", problems=[problem])
    return find_by_identifier(session, keyring, kind, value, sent_by=sent_by)


def _plan_of(plan: ErasurePlan, kind: str | None) -> ErasurePlan:
    try:
        return plan.for_people(kind)
    except Refused as error:
        problems = [Problem("type", each.message, code="not_allowed") for each in error.problems]
        raise Refused("The kind of people is not known.", problems=problems) from None


def _require_one_way(body: models.SubjectSearch) -> None:
    """Refuse with every field that is missing or too many for a search by id, or by identifier."""
    by_id, given = body.id is not None, body.model_fields_set
    if by_id:
        said = "goes with a search by identifier only"
        problems = [
            Problem(name, said, code="not_allowed") for name in ("identifier", "value") if name in given
        ]
    else:
        missing = [name for name in ("identifier", "value") if getattr(body, name) is None]
        problems = [Problem(name, "is missing", code="missing") for name in missing]
        if len(missing) == 2:
            problems = [Problem("id", "is missing, or `identifier` with `value`", code="missing")]
        if body.type is not None:
            problems.append(Problem("type", "goes with a search by id only", code="not_allowed"))
    if problems:
        raise Refused("The request body is invalid.", problems=problems)
