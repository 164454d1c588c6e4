"""Messages get out: after the commit, to each target, until it has them or a person knows."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from notify_cast import Town, abandoned, webhook
from receivers import Receiver, receiver

from effaced.core.clock import ManualClock
from effaced.model import DeadLetterDomain, DeliveryStatus, OutboxOperation, new_id
from effaced.notify.claim import claim
from effaced.notify.notices import RequestCompleted
from effaced.notify.settle import Outcome, Rules, settle
from effaced.notify.write import announce
from effaced.retries.policy import BackoffPolicy


class TestWriting:
    def test_what_is_rolled_back_is_never_told(self, told: Town, oncall: Receiver) -> None:
        class Undone(Exception):
            pass

        def announce_and_fail() -> None:
            with told.db.begin() as session:
                announce(session, [abandoned()])
                raise Undone

        with pytest.raises(Undone):
            announce_and_fail()
        assert told.messages() == []
        assert told.deliver() == 0
        assert oncall.posts == []

    def test_needs_nobody_to_be_configured(self, town: Town) -> None:
        town.tell()
        assert len(town.messages()) == 1

    def test_something_that_is_no_notice_is_refused(self, town: Town) -> None:
        with pytest.raises(TypeError, match="not a notice"), town.db.begin() as session:
            announce(session, [object()])  # type: ignore[list-item]


class TestFanOut:
    def test_every_target_gets_a_message_once(self, town: Town) -> None:
        with receiver() as one, receiver() as other:
            town.configure(webhook(one, "one")[:-1] + ", " + webhook(other, "other")[1:])
            town.tell()
            assert town.deliver() == 2
            assert town.deliver() == 0
            assert [len(one.posts), len(other.posts)] == [1, 1]
            assert one.posts[0].id == other.posts[0].id

    def test_a_target_gets_only_what_it_asked_for(self, town: Town, oncall: Receiver) -> None:
        town.configure(webhook(oncall, more=", events: [request.completed]"))
        town.tell(abandoned(), RequestCompleted(request_id=new_id(), operation=OutboxOperation.ERASE))
        town.deliver()
        assert [post.verified()["type"] for post in oncall.posts] == ["request.completed"]

    def test_with_nobody_configured_messages_wait(self, town: Town, oncall: Receiver) -> None:
        town.tell()
        assert (town.is_due(), town.deliver()) == (False, 0)
        town.configure(webhook(oncall))
        assert (town.is_due(), town.deliver()) == (True, 1)

    def test_whoever_is_configured_later_is_not_flooded_with_old_messages(
        self, town: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        town.tell()
        now.advance(timedelta(days=4))
        town.configure(webhook(oncall))
        assert town.deliver() == 0
        assert not town.is_due()

    def test_many_messages_all_get_out(self, told: Town, oncall: Receiver) -> None:
        told.tell(*(abandoned(attempts=number) for number in range(1, 31)))
        assert told.deliver() == 30
        assert len({post.id for post in oncall.posts}) == 30

    def test_several_processes_at_once_send_each_message_once(self, told: Town, oncall: Receiver) -> None:
        told.tell(*(abandoned(attempts=number) for number in range(1, 31)))
        deliverers = [told.runtime.deliverer() for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            done = [pool.submit(asyncio.run, deliverer.run()) for deliverer in deliverers]
        assert sum(each.result() for each in done) == 30
        assert len({post.id for post in oncall.posts}) == len(oncall.posts) == 30


class TestRetry:
    def test_follows_the_backoff_with_the_same_id_and_another_signature(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        oncall.statuses = [500, 503, 200]
        told.tell()
        assert told.deliver() == 0
        assert told.deliver() == 0, "not due yet"
        assert len(oncall.posts) == 1
        now.advance(timedelta(seconds=30))
        told.deliver()
        now.advance(timedelta(seconds=59))
        assert (told.is_due(), told.deliver()) == (False, 0)
        now.advance(timedelta(seconds=1))
        assert told.deliver() == 1
        first, second, third = oncall.posts
        assert first.id == second.id == third.id == str(told.messages()[0].id)
        assert first.body == second.body == third.body
        assert len({post.headers["webhook-signature"] for post in oncall.posts}) == 3
        assert [post.verified()["type"] for post in oncall.posts] == ["entry.abandoned"] * 3

    def test_every_try_is_in_the_log(self, told: Town, oncall: Receiver, now: ManualClock) -> None:
        oncall.statuses = [500, 200]
        told.tell()
        told.deliver()
        now.advance(timedelta(seconds=30))
        told.deliver()
        delivery = told.delivery()
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, 2)
        logged = [
            (each.number, each.delivered, each.status_code, each.error) for each in told.attempts(delivery.id)
        ]
        assert logged == [(1, False, 500, "http_500"), (2, True, 200, None)]

    def test_waits_as_long_as_the_receiver_asks(self, told: Town, oncall: Receiver, now: ManualClock) -> None:
        oncall.statuses, oncall.headers = [429], {"Retry-After": "600"}
        told.tell()
        told.deliver()
        assert told.delivery().gate == now() + timedelta(minutes=10)

    def test_a_target_in_trouble_is_left_alone_and_others_are_served(
        self, town: Town, oncall: Receiver
    ) -> None:
        with receiver() as other:
            town.configure(webhook(oncall)[:-1] + ", " + webhook(other, "other")[1:])
            oncall.statuses = [500]
            town.tell(*(abandoned(attempts=number) for number in range(1, 11)))
            assert town.deliver() == 10
            assert [len(oncall.posts), len(other.posts)] == [3, 10]


class TestEnd:
    def give_up(self, told: Town, oncall: Receiver, now: ManualClock) -> None:
        oncall.statuses = [500]
        told.tell()
        for _ in range(8):
            told.deliver()
            now.advance(timedelta(hours=1))

    def test_after_the_last_attempt_a_dead_letter_is_opened(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        self.give_up(told, oncall, now)
        assert len(oncall.posts) == 8
        assert not told.is_due()
        delivery, (letter,) = told.delivery(), told.letters()
        assert delivery.status is DeliveryStatus.UNDELIVERABLE
        assert (letter.domain, letter.entry_id) == (DeadLetterDomain.MESSAGE, delivery.id)
        assert (letter.resolver, letter.failure_type) == ("oncall", "http_500")
        assert (letter.error_code, letter.request_id) == ("attempts_exhausted", None)

    def test_no_message_is_sent_about_a_message(self, told: Town, oncall: Receiver, now: ManualClock) -> None:
        self.give_up(told, oncall, now)
        assert len(told.messages()) == 1

    def test_what_could_be_tried_again_only_beyond_its_age_is_given_up(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        told.settings["max_age_days"] = 1
        oncall.statuses, oncall.headers = [429], {"Retry-After": str(13 * 3600)}
        told.tell()
        told.deliver()
        assert told.delivery().status is DeliveryStatus.PENDING
        now.advance(timedelta(hours=13))
        told.deliver()
        assert told.delivery().status is DeliveryStatus.UNDELIVERABLE
        assert [letter.error_code for letter in told.letters()] == ["max_age"]

    def test_tries_that_all_ended_their_process_come_to_an_end_too(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        told.settings["max_attempts"] = 1
        told.tell()
        told.fan_out()
        with told.db.begin() as session:
            assert claim(session, "oncall", lease=timedelta(minutes=5)) is not None
        now.advance(timedelta(minutes=5))
        told.deliver()
        assert oncall.posts == []
        assert [letter.failure_type for letter in told.letters()] == ["interrupted"]


class TestLateSettle:
    def test_is_refused_and_changes_nothing_once_another_has_the_delivery(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        oncall.statuses = [500]
        told.tell()
        told.deliver()
        now.advance(timedelta(seconds=30))
        with told.db.begin() as session:
            late = claim(session, "oncall", lease=timedelta(minutes=5))
        assert late is not None
        now.advance(timedelta(minutes=5))
        oncall.statuses = [200]
        assert told.deliver() == 1
        with told.db.begin() as session:
            assert not settle(session, late, Outcome(delivered=False, error="timeout"), rules())
        delivery = told.delivery()
        assert (delivery.status, delivery.last_error) == (DeliveryStatus.DELIVERED, None)
        assert [each.number for each in told.attempts(delivery.id)] == [1, 3]

    def test_is_refused_while_another_is_still_sending(self, told: Town, now: ManualClock) -> None:
        lease = timedelta(minutes=5)
        told.tell()
        told.fan_out()
        with told.db.begin() as session:
            late = claim(session, "oncall", lease=lease)
        now.advance(lease)
        with told.db.begin() as session:
            current = claim(session, "oncall", lease=lease)
        assert late is not None
        assert current is not None
        with told.db.begin() as session:
            assert not settle(session, late, Outcome(delivered=True), rules())
            assert settle(session, current, Outcome(delivered=False, error="timeout"), rules())
        assert (told.delivery().status, told.delivery().last_error) == (DeliveryStatus.PENDING, "timeout")

    def test_a_delivery_under_lease_is_nobody_else_s(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        oncall.statuses = [500]
        told.tell()
        told.deliver()
        now.advance(timedelta(seconds=30))
        with told.db.begin() as session:
            assert claim(session, "oncall", lease=timedelta(minutes=5)) is not None
        assert (told.is_due(), told.deliver()) == (False, 0)


class TestRemovedTarget:
    def leave_one_waiting(self, told: Town, oncall: Receiver, now: ManualClock) -> None:
        oncall.statuses = [500]
        told.tell()
        told.deliver()
        oncall.statuses = [200]
        now.advance(timedelta(hours=1))

    def test_its_messages_wait_and_nobody_is_rung_for_them(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        self.leave_one_waiting(told, oncall, now)
        with receiver() as other:
            told.configure(webhook(other, "other"))
            assert (told.is_due(), told.deliver()) == (False, 0)
        assert told.delivery().status is DeliveryStatus.PENDING

    def test_they_are_delivered_if_it_comes_back(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        self.leave_one_waiting(told, oncall, now)
        told.configure()
        told.deliver()
        told.configure(webhook(oncall))
        assert told.deliver() == 1

    def test_in_the_end_a_person_is_told_of_them(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        self.leave_one_waiting(told, oncall, now)
        now.advance(timedelta(days=26))
        with receiver() as other:
            told.configure(webhook(other, "other"))
            assert told.is_due()
            told.deliver()
            assert other.posts == []
        (letter,) = told.letters()
        assert (letter.resolver, letter.failure_type) == ("oncall", "target_removed")


def rules() -> Rules:
    return Rules(8, timedelta(days=25), BackoffPolicy(), lambda *_: None, lambda *_: None)


def test_after_the_clock_was_set_back_a_delivery_waits_no_longer_than_it_was_meant_to(
    told: Town, oncall: Receiver, now: ManualClock
) -> None:
    oncall.statuses = [503]
    told.tell()
    told.deliver()
    wait = told.delivery().gate - now()
    now.advance(-timedelta(hours=1))
    told.runtime.restart_waits()
    assert told.delivery().gate == now() + wait
    told.runtime.restart_waits()
    assert told.delivery().gate == now() + wait
