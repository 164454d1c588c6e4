"""The demo's resolvers.yaml against its vendors: well, and with every fault switched on."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

import pytest

from effaced.core import clock
from effaced.demo.company import demo_people, vendor_records
from effaced.demo.vendors import Vendors
from effaced.model import SubjectRef
from effaced.resolvers.load import load_registry
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    CallTimeout,
    CredentialsRefused,
    Erased,
    Rejected,
    Scheduled,
    TransientFailure,
    Unreachable,
)

DEMO = Path(str(files("effaced.demo") / "resolvers.yaml"))
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ANNA = next(each for each in demo_people(20) if each["id"] % 4 and "crm_contact" in each["refs"])


@pytest.fixture
def vendors():
    with Vendors() as running:
        for name, records in vendor_records(demo_people(20)).items():
            running.seed(name, records)
        yield running


@pytest.fixture
def registry(vendors, tmp_path):
    path = tmp_path / "resolvers.yaml"
    path.write_text(DEMO.read_text().replace("timeout: 5", "timeout: 2"))
    return load_registry(path, vendors.environ)


@pytest.fixture
def erase(registry):
    def erase_anna(name: str, key=None):
        entry = registry.get(name)
        ref = SubjectRef(entry.ref, ANNA["refs"][entry.ref])
        return asyncio.run(entry.resolver.erase_subject(ref, key=key or uuid4()))

    return erase_anna


@pytest.fixture
def absent(registry):
    def is_anna_absent(name: str) -> bool:
        entry = registry.get(name)
        ref = SubjectRef(entry.ref, ANNA["refs"][entry.ref])
        return asyncio.run(entry.resolver.verify_absent(ref, key=uuid4()))

    return is_anna_absent


@pytest.mark.parametrize("name", ["payment", "crm", "files"])
def test_a_person_is_erased_and_the_read_back_agrees(erase, absent, name):
    assert (absent(name), erase(name), absent(name), erase(name)) == (False, Erased(), True, AlreadyAbsent())


def test_everybody_else_stays(vendors, erase):
    before = {name: len(vendors.records(name)) for name in ("payment", "crm", "files")}
    for name in before:
        erase(name)
    after = {name: len(vendors.records(name)) for name in before}
    assert {name: before[name] - after[name] for name in before} == {"payment": 1, "crm": 1, "files": 2}


def test_the_mailing_list_schedules_and_the_same_entry_later_finds_nothing(vendors, erase):
    key = uuid4()
    with clock.pretend(NOON) as now:
        assert erase("mailing", key) == Scheduled(NOON + vendors.expire_after)
        now.advance(vendors.expire_after)
        assert erase("mailing", key) == AlreadyAbsent()


def test_a_repeated_entry_gets_the_same_answer(erase):
    key = uuid4()
    assert (erase("payment", key), erase("payment", key)) == (Erased(), Erased())


@pytest.mark.parametrize(
    ("kind", "options", "family"),
    [
        ("down", {"how": "close"}, Unreachable),
        ("down", {"how": "503"}, TransientFailure),
        ("slow", {"seconds": 60}, CallTimeout),
        ("flaky", {"every": 1}, TransientFailure),
        ("unauthorised", {}, CredentialsRefused),
        ("rejects", {}, Rejected),
    ],
)
def test_each_fault_is_told_for_what_it_is(vendors, erase, kind, options, family):
    vendors.fault("crm", kind, **options)
    with pytest.raises(family):
        erase("crm")


@pytest.mark.parametrize("as_date", [False, True])
def test_a_throttling_vendor_is_left_alone_as_long_as_it_asks(vendors, erase, as_date):
    vendors.fault("crm", "throttled", retry_after=90, as_date=as_date)
    with clock.pretend(NOON), pytest.raises(TransientFailure) as raised:
        erase("crm")
    assert raised.value.retry_after == timedelta(seconds=90)


def test_a_lie_is_found_by_the_read_back(vendors, erase, absent):
    vendors.fault("crm", "lies")
    assert (erase("crm"), absent("crm")) == (Erased(), False)


def test_a_vendor_that_is_well_again_goes_on_where_it_was(vendors, erase):
    vendors.fault("crm", "down")
    key = uuid4()
    with pytest.raises(Unreachable):
        erase("crm", key)
    vendors.heal("crm")
    assert erase("crm", key) == Erased()
