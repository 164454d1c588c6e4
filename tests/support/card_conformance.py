"""What the conformance suite is told about the card index, sound resolver or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, ClassVar

import pytest
from card_index import (
    CORRECTIONS,
    CardIndex,
    CardResolver,
    ExpiringCardResolver,
    RectifyingCardResolver,
    VerifyingCardResolver,
    serving,
)

from effaced.model import Correction, SubjectRef
from effaced.testing import (
    RectifyingConformance,
    RetainingConformance,
    RetentionOnlyConformance,
    VerifyingConformance,
)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[CardIndex, str]]:
    """One index for all tests of a module: they add people of their own."""
    index = CardIndex()
    with serving(index) as url:
        yield index, url


class CardHooks:
    resolver: ClassVar[Callable[[str], Any]] = CardResolver

    @pytest.fixture(autouse=True)
    def system(self, served: tuple[CardIndex, str], monkeypatch: pytest.MonkeyPatch) -> None:
        # Loopback is called directly, whatever this machine's proxy is.
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        self.index, self.url = served

    def make_resolver(self) -> Any:
        return type(self).resolver(self.url)

    def add_person(self) -> SubjectRef:
        return self.index.add()

    def add_retained_person(self) -> SubjectRef:
        return self.index.add(kept=True)

    def is_present(self, ref: SubjectRef) -> bool:
        return ref.value in self.index.cards

    def unreachable(self) -> AbstractContextManager[SubjectRef]:
        return self.index.in_trouble("hang up")

    def failing(self) -> AbstractContextManager[SubjectRef]:
        return self.index.in_trouble(500)

    def refusing(self) -> AbstractContextManager[SubjectRef]:
        return self.index.in_trouble(400)

    def keys_received(self) -> Collection[str]:
        return self.index.keys

    def corrections(self) -> Sequence[Correction]:
        return CORRECTIONS

    def values_of(self, ref: SubjectRef) -> Mapping[str, str | None]:
        return self.index.cards[ref.value]


class CardConformance(CardHooks, RetainingConformance):
    """What a resolver must pass that only erases."""


class VerifyingCardConformance(CardHooks, VerifyingConformance):
    resolver = VerifyingCardResolver


class RectifyingCardConformance(CardHooks, RectifyingConformance):
    resolver = RectifyingCardResolver


class ExpiringCardConformance(CardHooks, RetentionOnlyConformance):
    resolver = ExpiringCardResolver

    def pass_horizon(self, ref: SubjectRef, until: datetime) -> None:
        self.index.cards.pop(ref.value, None)
