"""The `http` kind passes the suite for authors, against the demo's vendors."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from waiting import PATIENCE

from effaced.core import clock
from effaced.demo.vendors import Vendors
from effaced.model import Correction, CorrectionValue, SubjectRef
from effaced.resolvers.http import HttpResolver, from_config
from effaced.resolvers.protocols import Limits
from effaced.testing import (
    RectifyingConformance,
    ResolverConformance,
    RetentionOnlyConformance,
    SchedulingConformance,
    VerifyingConformance,
)

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def vendors() -> Iterator[Vendors]:
    with Vendors() as running:
        yield running


class VendorHooks:
    """What the suite is told about a vendor of the demo."""

    vendor: ClassVar[str]
    people: ClassVar[str] = "anna-{}"
    config: ClassVar[Mapping[str, Any]]

    @pytest.fixture(autouse=True)
    def loud_libraries(self) -> Iterator[None]:
        """As in a process that never set up effaced's logging: the resolver has to see to it itself."""
        loggers = [logging.getLogger(name) for name in ("httpx", "httpcore")]
        before = [each.level for each in loggers]
        for each in loggers:
            each.setLevel(logging.NOTSET)
        yield
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)

    @pytest.fixture(autouse=True)
    def system(self, vendors: Vendors, monkeypatch: pytest.MonkeyPatch) -> None:
        # Loopback is called directly, whatever this machine's proxy is.
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        self.vendors = vendors

    def make_resolver(self) -> HttpResolver:
        common = {
            "base_url": self.vendors.url(self.vendor),
            "auth": {"bearer": self.vendors.token},
            "gone": [404],
        }
        return from_config(
            self.vendor, common | dict(self.config), Limits(timeout=timedelta(seconds=PATIENCE))
        )

    def add_person(self) -> SubjectRef:
        value = self.people.format(next(NUMBERS))
        self.vendors.seed(self.vendor, {value: {}})
        return SubjectRef("person", value)

    def is_present(self, ref: SubjectRef) -> bool:
        return bool(self.vendors.store.find(self.vendor, ref.value))

    def unreachable(self) -> AbstractContextManager[SubjectRef]:
        return self.fault("down", how="close")

    def failing(self) -> AbstractContextManager[SubjectRef]:
        return self.fault("down", how="503")

    def refusing(self) -> AbstractContextManager[SubjectRef]:
        return self.fault("rejects")

    def keys_received(self) -> Collection[str]:
        return [call.idempotency_key for call in self.vendors.calls if call.idempotency_key]

    @contextmanager
    def fault(self, kind: str, **options: object) -> Iterator[SubjectRef]:
        ref = self.add_person()
        self.vendors.fault(self.vendor, kind, **options)
        try:
            yield ref
        finally:
            self.vendors.heal(self.vendor)


class TestPlain(VendorHooks, ResolverConformance):
    """One call, whose status is the answer."""

    vendor = "payment"
    config: ClassVar = {"erase": {"method": "DELETE", "path": "/v1/customers/{ref}"}}


class TestVerifying(VendorHooks, VerifyingConformance):
    """With a read-back."""

    vendor = "crm"
    config: ClassVar = {
        "erase": {"method": "DELETE", "path": "/contacts/{ref}"},
        "verify": {"path": "/contacts/{ref}", "absent": [404], "present": [200]},
    }


class TestRectifying(VendorHooks, VerifyingConformance, RectifyingConformance):
    """With corrections, each under the vendor's own name for it."""

    vendor = "crm"
    config: ClassVar = {
        **TestVerifying.config,
        "rectify": {"path": "/contacts/{ref}", "fields": {"name": "name", "email": "contact.email"}},
    }

    def add_person(self) -> SubjectRef:
        value = self.people.format(next(NUMBERS))
        record = {"name": "Anna Alt", "contact": {"email": "alt@people.example", "phone": "+49 1"}}
        self.vendors.seed(self.vendor, {value: record})
        return SubjectRef("person", value)

    def corrections(self) -> list[Correction]:
        return [Correction("name", "Anna Neu"), Correction("email", "neu@people.example")]

    def values_of(self, ref: SubjectRef) -> dict[str, CorrectionValue]:
        record: dict[str, Any] = self.vendors.records(self.vendor)[ref.value]
        return {
            "name": record["name"],
            "email": record["contact"]["email"],
            "phone": record["contact"]["phone"],
        }


class TestByPrefix(VendorHooks, VerifyingConformance):
    """With the reference in the query."""

    vendor = "files"
    people = "customers/anna {}/"
    config: ClassVar = {
        "erase": {"method": "DELETE", "path": "/objects", "query": {"prefix": "{ref}"}},
        "verify": {"path": "/objects", "query": {"prefix": "{ref}"}, "absent": [404], "present": [200]},
    }


class TestScheduled(VendorHooks, VerifyingConformance, SchedulingConformance):
    """With a vendor that lets data expire, and says when."""

    vendor = "mailing"
    people = "anna.{}@people.example"
    config: ClassVar = {
        "erase": {"method": "DELETE", "path": "/subscribers/{ref}"},
        "scheduled": {"status": [202], "until": "expires_at"},
        "verify": {"path": "/subscribers/{ref}", "absent": [404], "present": [200]},
    }

    @pytest.fixture(autouse=True)
    def noon(self) -> Iterator[None]:
        with clock.pretend(NOON) as self.clock:
            yield

    def pass_horizon(self, ref: SubjectRef, until: datetime) -> None:
        self.clock.advance(until - clock.now())


class TestExpiring(VendorHooks, VerifyingConformance, RetentionOnlyConformance):
    """With a system that can't be told to delete and forgets by itself."""

    vendor = "crm"
    config: ClassVar = {
        "expires": {"within_days": 30},
        "verify": {"path": "/contacts/{ref}", "absent": [404], "present": [200]},
    }

    def pass_horizon(self, ref: SubjectRef, until: datetime) -> None:
        self.vendors.store.delete(self.vendor, [ref.value])

    test_the_key_reaches_the_system = None  # nothing is told, only asked: there is no key to pass on
