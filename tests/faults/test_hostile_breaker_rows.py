"""A stranger writes where breakers are kept in Redis: what can't be read closes nothing and is repaired."""

from __future__ import annotations

import json
import pickle
from contextlib import closing
from typing import Any

import pytest
from breaker_cast import CRM, SUCCESS, is_open
from breaker_fleet import Fleet
from structlog.testing import capture_logs

from effaced.breakers.model import BreakerState
from effaced.breakers.open_store import connect
from effaced.breakers.stores.codec import as_text
from effaced.breakers.stores.redis import PREFIX, RedisBreakerStore

pytestmark = pytest.mark.usefixtures("now")
KEY = PREFIX + CRM
CLOSED = {"service_name": CRM, "state": "closed", "slots": [], "recent_failures": [], "version": 99}
UNREADABLE = {
    "no JSON": b"closed",
    "not UTF-8": b"\xff\xfe{}",
    "pickled": pickle.dumps(CLOSED),
    "a list": b"[]",
    "nothing": b"{}",
    "too deep": b"[" * 100_000,
    "too long": json.dumps(CLOSED | {"reason": "x" * 300_000}).encode(),
    "a number too long": b'{"version": ' + b"9" * 5_000 + b"}",
    "another breaker's": json.dumps(CLOSED | {"service_name": "resolver:mail"}).encode(),
    "an unknown state": json.dumps(CLOSED | {"state": "ajar"}).encode(),
    "an unknown field": json.dumps(CLOSED | {"__class__": "os.system"}).encode(),
    "a time without a zone": json.dumps(CLOSED | {"updated_at": "2026-03-02T12:00:00"}).encode(),
    "a count that is none": json.dumps(CLOSED | {"failure_count": "3"}).encode(),
    "a version past all": json.dumps(CLOSED | {"version": 2**70}).encode(),
    "not a number": json.dumps(CLOSED | {"reset_timeout_s": float("nan")}).encode(),
    "a slot of one part": json.dumps(CLOSED | {"slots": [[1]]}).encode(),
}


def write(fleet: Fleet, value: bytes) -> None:
    with closing(connect(fleet.redis.url)) as client:
        client.set(KEY, value)


def replace_by_a_list(fleet: Fleet) -> None:
    with closing(connect(fleet.redis.url)) as client:
        client.delete(KEY)
        client.rpush(KEY, "a list where a text is expected")


@pytest.mark.parametrize("who", ["running", "fresh"])
@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_open_breaker_stays_open_and_its_row_is_written_again(
    fleet: Fleet, value: bytes, who: str
) -> None:
    one = fleet.process()
    one.fail()
    write(fleet, value)
    asked = one if who == "running" else fleet.process()
    assert asked.state() is BreakerState.OPEN
    assert asked.calls.admit("crm").granted == 0
    assert fleet.shared() == {CRM: "open"}


@pytest.mark.parametrize("who", ["running", "fresh"])
def test_a_key_of_the_wrong_type_is_no_closed_breaker(fleet: Fleet, who: str) -> None:
    one = fleet.process()
    one.fail()
    replace_by_a_list(fleet)
    asked = one if who == "running" else fleet.process()
    assert asked.state() is BreakerState.OPEN
    assert fleet.shared() == {CRM: "open"}


def test_a_change_of_an_unreadable_row_goes_on_from_what_is_known(fleet: Fleet) -> None:
    one = fleet.process()
    one.fail(times=1)
    write(fleet, b"garbage")
    one.fail(times=1)
    assert fleet.shared() == {CRM: "open"}


def test_it_is_told_once_however_often_it_is_looked_at(fleet: Fleet) -> None:
    write(fleet, b"garbage")
    with capture_logs() as logs:
        one = fleet.process()
        for _ in range(5):
            one.calls.settle(one.calls.admit("crm"), [SUCCESS])
    told: list[Any] = [each for each in logs if each["event"] == "breaker_row_unreadable"]
    assert [each["breaker"] for each in told] == [CRM]


def test_the_list_of_all_breakers_leaves_out_what_can_not_be_read(fleet: Fleet) -> None:
    one = fleet.process()
    one.fail()
    with closing(connect(fleet.redis.url)) as client:
        client.set(PREFIX.encode() + b"\xff", b"x")
        client.set(PREFIX + "resolver:mail", b"garbage")
        client.rpush(PREFIX + "resolver:files", "a list")
    assert fleet.shared() == {CRM: "open"}


def test_what_was_written_is_read_again(fleet: Fleet) -> None:
    row = is_open(failure_count=3, reset_timeout_s=1.5)
    write(fleet, as_text(row).encode())
    with closing(connect(fleet.redis.url)) as client:
        assert RedisBreakerStore(client).load([CRM]) == {CRM: row}
