"""Resolvers as authors write them pass the suite for authors."""

from __future__ import annotations

from card_conformance import (
    CardConformance,
    ExpiringCardConformance,
    RectifyingCardConformance,
    VerifyingCardConformance,
)
from card_index import RectifyingCardResolver, VerifyingCardResolver


class TestErasing(CardConformance):
    """Keeps whom it must."""


class TestExpiring(ExpiringCardConformance):
    """Can only have people let go later."""


class VersatileCardResolver(VerifyingCardResolver, RectifyingCardResolver):
    pass


class TestVersatile(VerifyingCardConformance, RectifyingCardConformance):
    """Erases, looks and corrects."""

    resolver = VersatileCardResolver
