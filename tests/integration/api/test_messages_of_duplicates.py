"""Two API keys ask for one person: the messages to either tell nothing of the other."""

from __future__ import annotations

from uuid import UUID

import pytest
from integrators import STAGES, Integrator, Join, deliver, drain
from sqlalchemy import select

from effaced.accounts.officers import create_officer
from effaced.model import NoticeType, Role
from effaced.notify.tables import Message
from effaced.requests.approve import approve_and_execute

ALL = [each.value for each in NoticeType if each.value.startswith(("request.", "step.", "entry."))]


@pytest.fixture
def first(join: Join) -> Integrator:
    """Its requests wait for an officer."""
    made = join("first", approvals=1)
    made.register(ALL)
    return made


def officer_approves(caller: Integrator, request: dict[str, str]) -> None:
    runtime = caller.api.runtime
    about = {"email": "o@example.org", "name": "Olga", "password": "a long pass phrase", "actor": "cli"}
    with runtime.db.begin() as session:
        olga = create_officer(session, role=Role.OFFICER, **about)
    approve_and_execute(runtime.executor, UUID(request["id"]), by=olga.id, reason="checked")


@pytest.mark.parametrize("approvals", [0, 1])
def test_a_duplicate_s_sender_gets_what_it_would_if_nobody_else_had_asked(
    first: Integrator, join: Join, approvals: int
) -> None:
    second = join("second", approvals=approvals)
    second.register(ALL)
    original, duplicate = first.ask("4"), second.ask("4")
    deliver(first.api)
    assert second.told(duplicate) == STAGES[: 1 if approvals else 2]
    officer_approves(first, original)
    deliver(first.api)
    assert second.told(duplicate) == STAGES[:3]
    drain(first.api)
    deliver(first.api)
    assert second.told() == second.told(duplicate) == STAGES
    assert first.told() == first.told(original)
    assert set(first.told()) - {"step.succeeded"} == set(STAGES)
    bodies = "".join(post.body.decode() for post in second.receiver.posts)
    assert original["id"] not in bodies
    assert original["ref"] not in bodies
    assert "duplicate" not in bodies


def test_one_that_came_after_the_execution_passes_through_its_stages_at_the_end(
    first: Integrator, join: Join
) -> None:
    second = join("second", approvals=1)
    second.register(ALL)
    original = first.ask("4")
    officer_approves(first, original)
    duplicate = second.ask("4")
    deliver(first.api)
    assert second.told(duplicate) == ["request.received"]
    drain(first.api)
    deliver(first.api)
    assert second.told(duplicate) == STAGES


def test_everybody_else_gets_what_has_happened(first: Integrator, join: Join) -> None:
    second = join("second")
    original, duplicate = first.ask("4"), second.ask("4")
    second.register(STAGES)
    officer_approves(first, original)
    drain(first.api)
    with first.api.runtime.db.read() as session:
        of_duplicate = session.execute(
            select(Message.type, Message.only_sender)
            .where(Message.request_id == UUID(duplicate["id"]))
            .order_by(Message.id)
        ).all()
    assert [(type_.value, only) for type_, only in of_duplicate] == [
        ("request.received", False),
        ("request.approved", True),
        ("request.executed", True),
        ("request.completed", False),
    ]


def test_a_key_s_own_duplicate_is_received_and_completed(first: Integrator) -> None:
    original, duplicate = first.ask("4"), first.ask("4")
    officer_approves(first, original)
    drain(first.api)
    deliver(first.api)
    assert first.told(duplicate) == ["request.received", "request.completed"]
