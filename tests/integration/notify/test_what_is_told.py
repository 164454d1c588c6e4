"""What effaced tells of by itself: each end that needs a person, and each completed request."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from notify_cast import Town, webhook
from receivers import Mailbox, Receiver
from requests_cast import Office
from saga_cast import CheckingVendor, House, Vendor

from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import ResolverError
from effaced.notify.tables import Message
from effaced.notify.tidy import delete_old_messages
from effaced.requests.approve import approve_and_execute
from effaced.triage.retry import redrive

ANNA = "anna@people.example"


def kinds(town: Town) -> list[str]:
    return [message.type.value for message in town.messages()]


def facts(message: Message) -> dict[str, object]:
    return {name: value for name, value in message.payload.items() if not name.endswith("_id")}


def test_an_abandoned_entry_with_its_resolver_error_and_code(town: Town) -> None:
    house = House(town.db)
    house.vendor("crm", Vendor(lambda _: ResolverError(f"no {ANNA}", code="http_422")))
    request_id = house.request(("crm", ANNA))
    house.drain()
    (message,) = town.messages()
    assert (message.type.value, message.request_id) == ("entry.abandoned", request_id)
    assert facts(message) == {
        "error": "ResolverError",
        "code": "http_422",
        "resolver": "crm",
        "attempts": 1,
        "again": False,
    }
    assert message.payload["dead_letter_id"] == str(town.letters()[0].id)


def test_a_vendor_that_still_has_the_person(town: Town) -> None:
    house = House(town.db)
    house.vendor("crm", CheckingVendor(absent=lambda _: False))
    house.request(("crm", ANNA))
    house.drain()
    assert kinds(town) == ["verification.failed"], "the request is not completed"


def test_a_completed_request_once(town: Town) -> None:
    house = House(town.db)
    house.vendor("crm", Vendor())
    request_id = house.request(("crm", ANNA), ("crm", "second"))
    house.drain()
    (message,) = town.messages()
    assert (message.type.value, message.request_id) == ("request.completed", request_id)


def test_a_local_execution_that_failed_and_its_second_failure(
    db: Database, town: Town, tmp_path: Path
) -> None:
    office = Office(db, tmp_path)
    office.break_execution()
    asked = office.receive("1").request
    approve_and_execute(office.executor, asked.id, by=office.olga.id, reason="checked")
    assert kinds(town) == ["execution.failed"]
    with db.begin() as session:
        redrive(session, office.keyring, [town.letters()[0].id], actor="cli", reason="once more")
    office.executor.execute_due()
    first, second = town.messages()
    assert (first.payload["again"], second.payload["again"]) == (False, True)
    assert first.payload["dead_letter_id"] == second.payload["dead_letter_id"]


def test_nothing_personal_leaves_the_house(town: Town, oncall: Receiver, post: Mailbox) -> None:
    mail = (
        f", officers: {{kind: email, smtp: {{host: 127.0.0.1, port: {post.port}, security: none}},"
        " from: effaced@company.example, to: [olga@office.example]}"
    )
    town.configure(webhook(oncall)[:-1] + mail + "}")
    house = House(town.db)
    house.vendor("crm", Vendor(lambda _: ResolverError(f"no {ANNA}", code="http_422")))
    house.request(("crm", ANNA))
    house.drain()
    assert town.deliver() == 2
    (told,), (mailed,) = oncall.posts, post.mails
    everything = (
        told.body.decode() + mailed.as_string() + json.dumps([each.payload for each in town.messages()])
    )
    assert "people.example" not in everything
    ref = told.verified()["data"]["ref"]
    assert ref.startswith("ER-")
    assert ref in mailed["Subject"]


class TestForgetting:
    def test_what_everybody_got_goes_after_ninety_days_with_its_log(
        self, told: Town, oncall: Receiver, now: ManualClock
    ) -> None:
        told.tell()
        told.deliver()
        now.advance(timedelta(days=89))
        assert self.forget(told) == 0
        now.advance(timedelta(days=2))
        assert self.forget(told) == 1
        assert (told.messages(), told.deliveries()) == ([], [])

    def test_what_could_not_be_delivered_stays(self, told: Town, oncall: Receiver, now: ManualClock) -> None:
        oncall.statuses = [500]
        told.settings["max_attempts"] = 1
        told.tell()
        told.deliver()
        now.advance(timedelta(days=400))
        assert self.forget(told) == 0

    def test_what_nobody_is_configured_for_does_not_pile_up(self, town: Town, now: ManualClock) -> None:
        town.tell()
        now.advance(timedelta(days=4))
        assert self.forget(town) == 1

    def forget(self, town: Town) -> int:
        with town.db.begin() as session:
            return delete_old_messages(session)
