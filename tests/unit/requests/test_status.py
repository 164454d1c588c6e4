"""Every status with every event: what the table has happens, everything else is refused with a sentence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import status_page
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.core.errors import Conflict, Refused
from effaced.model import RequestStatus, new_id
from effaced.requests.status import (
    TRANSITIONS,
    RequestEvent,
    Transition,
    Who,
    check_transition,
    transition,
    transition_many,
)
from effaced.requests.tables import Request

ROOT = Path(__file__).parents[3]
LINES = {(each.source, each.event): each for each in TRANSITIONS}
PAIRS = list(product((None, *RequestStatus), RequestEvent))
# Benches fill tables, and measure what raw SQL would cost, past all rules.
PAST_THE_RULES = ROOT / "effaced" / "bench"
# Other things that have a status.
OF_OTHERS = ("self.status", "redrive.status", "export.status", "wanted['status']")


def actor(who: Who) -> str:
    return who.value if who is Who.SYSTEM else f"{who.value}:{new_id()}"


def moved(source: RequestStatus | None, event: RequestEvent, by: str) -> RequestStatus:
    """The status after it, by the table alone: the request is in no database."""
    request = Request(ref="ER-1") if source is None else Request(ref="ER-1", status=source)
    return check_transition(request, event, by=by).target


@pytest.mark.parametrize("line", TRANSITIONS, ids=lambda each: f"{each.source}-{each.event.name}")
def test_what_the_table_has_happens(line: Transition) -> None:
    assert {moved(line.source, line.event, actor(each)) for each in line.who} == {line.target}


@pytest.mark.parametrize(
    ("source", "event"), [pair for pair in PAIRS if pair not in LINES], ids=lambda each: str(each)
)
def test_everything_else_is_refused(source: RequestStatus | None, event: RequestEvent) -> None:
    for who in Who:
        with pytest.raises(Conflict) as caught:
            moved(source, event, actor(who))
        said = str(caught.value)
        assert said.endswith(".")
        assert event.value in said
        assert source is None or "ER-1" in said


@pytest.mark.parametrize("line", TRANSITIONS, ids=lambda each: f"{each.source}-{each.event.name}")
@pytest.mark.parametrize("by", ["cli", *Who])
def test_nobody_else_may_do_it(line: Transition, by: str) -> None:
    if by in line.who:
        return
    with pytest.raises(Refused) as caught:
        moved(line.source, line.event, by)
    assert all(each.replace("_", " ") in str(caught.value) for each in line.who)


def test_a_new_request_is_given_its_status_and_written_by_whoever_adds_it() -> None:
    request = Request(ref="ER-1")
    transition(Session(), request, RequestEvent.RECEIVED_FOR_REVIEW, by="system")
    assert request.status is RequestStatus.REVIEW


def test_what_is_refused_leaves_the_request_as_it_was() -> None:
    request = Request(ref="ER-1", status=RequestStatus.RUNNING)
    with pytest.raises(Conflict):
        transition(Session(), request, RequestEvent.CANCELLED, by="officer:1", closed_at=clock.now())
    assert (request.status, request.closed_at) == (RequestStatus.RUNNING, None)


def test_no_pair_stands_in_the_table_twice() -> None:
    assert len(LINES) == len(TRANSITIONS)


def test_every_event_leads_somewhere() -> None:
    assert {each.event for each in TRANSITIONS} == set(RequestEvent)


@pytest.mark.parametrize("closed", [RequestStatus.COMPLETED, RequestStatus.CANCELLED, RequestStatus.REFUSED])
def test_nothing_leads_out_of_a_closed_request(closed: RequestStatus) -> None:
    assert [each for each in TRANSITIONS if each.source is closed] == []


def test_after_execution_nothing_can_be_cancelled_or_refused() -> None:
    ends = {each.target for each in TRANSITIONS if each.source is RequestStatus.RUNNING}
    assert ends == {RequestStatus.COMPLETED}


def test_many_requests_are_moved_from_where_the_table_allows_it_only() -> None:
    compiled = transition_many(RequestEvent.SUPERSEDED).compile()
    assert set(compiled.params.values()) == {
        RequestStatus.CANCELLED,
        RequestStatus.REVIEW,
        RequestStatus.APPROVED,
    }


def test_the_former_name_of_refused_is_still_read() -> None:
    assert RequestStatus("denied") is RequestStatus.REFUSED
    with pytest.raises(ValueError, match="rejected"):
        RequestStatus("rejected")


def test_the_documented_table_is_current() -> None:
    page = status_page.PAGE.read_text(encoding="utf-8")
    assert page == status_page.with_table(page), "run: .venv/bin/python tests/support/status_page.py"


# --- one writer ---


def writes_of_status(source: str) -> Iterator[str]:
    """What writes the status of a request, or looks like it."""
    for node in ast.walk(ast.parse(source)):
        if writes(node) and (written := ast.unparse(node)) not in OF_OTHERS:
            yield written


def writes(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="status", ctx=ast.Store()):
            return True
        case ast.Subscript(slice=ast.Constant(value="status"), ctx=ast.Store()):
            return True
        case ast.Call(func=ast.Name(id="setattr" | "set_committed_value"), args=[_, name, _]):
            return isinstance(name, ast.Constant) and name.value == "status"
        case ast.Call(func=func, keywords=keywords) if any(each.arg == "status" for each in keywords):
            name = ast.unparse(func)
            return name == "Request" or (name.endswith(".values") and "request" in name.lower())
        case ast.Dict(keys=keys, values=values):
            named = {
                each.value: ast.unparse(value)
                for each, value in zip(keys, values, strict=True)
                if isinstance(each, ast.Constant)
            }
            return "RequestStatus" in named.get("status", "")
        case ast.Constant(value=str(text)) if "effaced_requests" in text.lower():
            return bool({"update", "insert", "copy", "merge"} & set(text.lower().split()))
    return False


def test_only_the_table_of_transitions_writes_the_status_of_a_request() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): written
        for path in sorted((ROOT / "effaced").rglob("*.py"))
        if PAST_THE_RULES not in path.parents
        and (written := list(writes_of_status(path.read_text(encoding="utf-8"))))
    }
    assert found.keys() == {"effaced/requests/status.py"}


@pytest.mark.parametrize(
    "source",
    [
        "request.status = RequestStatus.REVIEW",
        "request.status, request.closed_at = after, now",
        "setattr(request, 'status', after)",
        "set_committed_value(request, 'status', after)",
        "Request(id=new_id(), status=RequestStatus.REVIEW)",
        "update(Request).where(Request.id == id).values(status=after)",
        "values = {'status': RequestStatus.COMPLETED}",
        "execute('UPDATE effaced_requests SET status = 1')",
    ],
)
def test_a_write_elsewhere_would_be_found(source: str) -> None:
    assert list(writes_of_status(source))
