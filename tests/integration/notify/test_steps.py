"""Messages about steps and stages: written while somebody wants them, with what happened in them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from notify_cast import Town, webhook
from receivers import Receiver
from saga_cast import CheckingVendor, House, Vendor

from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.errors import ResolverError, Unavailable
from effaced.notify.tables import Message
from effaced.resolvers.protocols import Scheduled

STEPS = ["step.succeeded", "step.scheduled", "step.failed", "step.abandoned"]


def wanting(town: Town, oncall: Receiver, events: Sequence[str] = (*STEPS, "request.verified")) -> House:
    """A house whose steps somebody wants to hear of; one run makes that known."""
    town.configure(webhook(oncall, more=f", events: [{', '.join(events)}]"))
    town.deliver()
    return House(town.db)


def told(town: Town, type_: str) -> Message:
    (message,) = [each for each in town.messages() if each.type.value == type_]
    return message


def test_nothing_is_written_while_nobody_wants_it(town: Town) -> None:
    house = House(town.db)
    house.vendor("crm", Vendor())
    house.request(("crm", "a"), ("crm", "b"))
    house.drain()
    assert [each.type.value for each in town.messages()] == ["request.completed"]


def test_a_success_with_its_outcome_and_evidence(town: Town, oncall: Receiver) -> None:
    house = wanting(town, oncall)
    house.vendor("crm", Vendor())
    request_id = house.request(("crm", "a"))
    house.drain()
    message = told(town, "step.succeeded")
    payload = dict(message.payload)
    assert (message.request_id, payload.pop("entry_id") != "") == (request_id, True)
    assert payload == {
        "resolver": "crm",
        "operation": "erase",
        "attempts": 1,
        "outcome": "erased",
        "evidence": "vendor_word",
    }


def test_a_failure_with_the_next_attempt(town: Town, oncall: Receiver, now: ManualClock) -> None:
    house = wanting(town, oncall)
    house.vendor("crm", Vendor(lambda _: TimeoutError()))
    house.request(("crm", "a"))
    house.drain()
    payload = told(town, "step.failed").payload
    assert payload["next_attempt_at"] == clock.text(now() + timedelta(seconds=30))
    assert payload["attempts"] == 1


def test_a_step_that_was_given_up(town: Town, oncall: Receiver) -> None:
    house = wanting(town, oncall)
    house.vendor("crm", Vendor(lambda _: ResolverError("no", code="http_422")))
    house.request(("crm", "a"))
    house.drain()
    payload = told(town, "step.abandoned").payload
    assert (payload["error"], payload["code"]) == ("ResolverError", "http_422")
    assert told(town, "entry.abandoned"), "the dead letter is announced as ever"


def test_a_date_that_the_system_names(town: Town, oncall: Receiver, now: ManualClock) -> None:
    until = now() + timedelta(days=30)
    house = wanting(town, oncall)
    house.vendor("crm", Vendor(lambda _: Scheduled(until)))
    house.request(("crm", "a"))
    house.drain()
    assert told(town, "step.scheduled").payload["until"] == clock.text(until)


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_request_is_verified_if_read_backs_confirmed_every_call(
    town: Town, oncall: Receiver, confirmed: bool
) -> None:
    house = wanting(town, oncall)
    house.vendor("crm", CheckingVendor(absent=lambda _: True))
    house.vendor("mail", CheckingVendor(absent=lambda _: True) if confirmed else Vendor())
    house.request(("crm", "a"), ("mail", "b"))
    house.drain("crm")
    house.drain("mail")
    types = [each.type.value for each in town.messages() if each.type.value.startswith("request.")]
    assert types == (["request.verified"] if confirmed else []) + ["request.completed"]
    if confirmed:
        assert told(town, "request.verified").payload == {"kind": "erasure", "calls": 2}


def test_a_settle_that_is_rolled_back_leaves_none(town: Town, oncall: Receiver) -> None:
    house = wanting(town, oncall)
    house.vendor("crm", Vendor())
    house.request(("crm", "a"))

    def fail(*_: object) -> None:
        raise RuntimeError

    with pytest.raises(Unavailable):
        house.drain(on_operations_complete=fail)
    assert town.messages() == []
