"""A message that could not be delivered is requeued by a person, and its dead letter ends with it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from notify_cast import Town
from receivers import Receiver
from requests_cast import Office
from sqlalchemy import select

from effaced.audit.tables import AuditEvent
from effaced.core.clock import ManualClock
from effaced.model import DeadLetterStatus, DeliveryStatus
from effaced.triage.retry import redrive


@pytest.fixture
def stuck(told: Town, oncall: Receiver, now: ManualClock) -> Town:
    """A town with one undeliverable message and its dead letter."""
    oncall.statuses = [500]
    told.tell()
    for _ in range(8):
        told.deliver()
        now.advance(timedelta(hours=1))
    return told


@pytest.fixture
def office(stuck: Town, tmp_path_factory: pytest.TempPathFactory) -> Office:
    return Office(stuck.db, tmp_path_factory.mktemp("office"))


def requeue(office: Office, town: Town) -> list[bool]:
    ids = [letter.id for letter in town.letters()]
    with town.db.begin() as session:
        results = redrive(session, office.keyring, ids, actor="cli", reason="the receiver is back")
    return [each.requeued for each in results]


def test_it_is_delivered_under_its_old_id_and_the_letter_is_resolved(
    stuck: Town, office: Office, oncall: Receiver
) -> None:
    oncall.statuses = [200]
    assert requeue(office, stuck) == [True]
    assert stuck.deliver() == 1
    assert len({post.id for post in oncall.posts}) == 1
    (letter,) = stuck.letters()
    assert letter.status is DeadLetterStatus.RESOLVED


def test_it_gets_a_full_set_of_attempts_and_fails_into_the_same_letter(
    stuck: Town, office: Office, oncall: Receiver, now: ManualClock
) -> None:
    requeue(office, stuck)
    for _ in range(8):
        stuck.deliver()
        now.advance(timedelta(hours=1))
    assert len(oncall.posts) == 16
    assert stuck.delivery().status is DeliveryStatus.UNDELIVERABLE
    (letter,) = stuck.letters()
    assert (letter.status, letter.retry_count) == (DeadLetterStatus.PENDING, 1)


def test_it_leaves_an_event_that_names_the_target(stuck: Town, office: Office) -> None:
    requeue(office, stuck)
    with stuck.db.read() as session:
        found = session.scalars(select(AuditEvent).where(AuditEvent.type == "MESSAGE_REQUEUED")).one()
    assert found.payload["target"] == "oncall"
    assert found.payload["message_id"] == str(stuck.messages()[0].id)
