"""The `sql` kind passes the suite for authors, on a second database of either engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
from other_database import GOES, STAYS, Shop

from effaced.model import Correction, CorrectionValue, SubjectRef
from effaced.resolvers.sql import SqlResolver
from effaced.testing import RectifyingConformance, VerifyingConformance


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    if request.param == "sqlite":
        yield Shop(f"sqlite:///{folder / 'shop.db'}", folder)
        return
    admin = request.getfixturevalue("postgres_admin")
    url = admin.create()
    yield Shop(url, folder)
    admin.drop(url)


class ShopHooks:
    """What the suite is told about the shop's database."""

    text: ClassVar[str]
    keys: ClassVar[dict[str, Any]]
    column: ClassVar[str]

    @pytest.fixture(autouse=True)
    def system(self, shop: Shop, request: pytest.FixtureRequest) -> None:
        self.shop = shop
        # Where calls wait for each other they are given time; where they wait in vain, little of it.
        self.lock_timeout = 10 if "at_once" in request.node.name else 0.05

    def make_resolver(self) -> SqlResolver:
        return self.shop.resolver(self.text, lock_timeout=self.lock_timeout, **self.keys)

    def add_person(self, name: str = "Anna Alt") -> SubjectRef:
        number = self.shop.person(name, invoices=1)
        return SubjectRef(
            "shop", str(self.shop.rows(f"SELECT {self.column} FROM users WHERE id = {number}")[0][0])
        )

    def is_present(self, ref: SubjectRef) -> bool:
        return bool(self._row(ref))

    def values_of(self, ref: SubjectRef) -> dict[str, CorrectionValue]:
        return dict(zip(("name", "email", "phone"), self._row(ref)[0], strict=True))

    def _row(self, ref: SubjectRef) -> list[tuple[Any, ...]]:
        return self.shop.rows(f"SELECT name, email, phone FROM users WHERE {self.column} = '{ref.value}'")

    @contextmanager
    def unreachable(self) -> Iterator[SubjectRef]:
        ref = self.add_person()
        with self.shop.away():
            yield ref

    @contextmanager
    def failing(self) -> Iterator[SubjectRef]:
        ref = self.add_person()
        with self.shop.locked():
            yield ref

    @contextmanager
    def refusing(self) -> Iterator[SubjectRef]:
        yield self.add_person("Stubborn")

    def keys_received(self) -> Collection[str]:
        return [key for (key,) in self.shop.rows("SELECT entry_id FROM effaced_sql_calls")]


class TestByKey(ShopHooks, VerifyingConformance, RectifyingConformance):
    """The reference is the subject's key, and everything goes."""

    text = GOES
    keys: ClassVar = {}
    column = "id"

    def unknown_person(self) -> SubjectRef:
        return SubjectRef("shop", str(10**9 + next(self.shop.numbers)))

    def corrections(self) -> list[Correction]:
        return [Correction("name", "Anna Neu"), Correction("email", "neu@people.example")]


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)  # both engines: test_sql_finding.py
class TestFoundBy(ShopHooks, VerifyingConformance, RectifyingConformance):
    """The reference is an address by which the row is found, which stays without the person."""

    text = STAYS
    keys: ClassVar = {"find_by": "email"}
    column = "email"

    def corrections(self) -> list[Correction]:
        return [Correction("name", "Anna Neu"), Correction("phone", "+49 2")]
