"""The policies that hold now: those of the files, changed at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from effaced.breakers.model import BreakerRole
from effaced.breakers.policy import BreakerPolicies, BreakerPolicy, merge
from effaced.core import clock
from effaced.core.log import get_logger

_log = get_logger(__name__)
_ASK_EVERY_S = 5.0
Overrides = Mapping[str, Mapping[str, Any]]


class PoliciesInForce:
    """`overrides` gives changed fields by breaker, asked now and then; `update` is for this process."""

    def __init__(self, base: BreakerPolicies, overrides: Callable[[], Overrides] | None = None) -> None:
        self._base = self._now = base
        self._ask = overrides
        self._given: Overrides = {}
        self._own: dict[str, Any] = {}
        self._ask_at = 0.0

    def named(self, service_name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        if self._ask is not None and clock.monotonic() >= self._ask_at:
            self._ask_at = clock.monotonic() + _ASK_EVERY_S
            self._take_over(self._ask)
        return self._now.named(service_name, role)

    def update(self, service_name: str, fields: Mapping[str, Any]) -> BreakerPolicy:
        own = merge(self._own, {service_name: fields})
        self._now = self._base.replace(self._given).replace(own)
        self._own = own
        return self.named(service_name)

    def _take_over(self, ask: Callable[[], Overrides]) -> None:
        try:
            given = ask()
            if given != self._given:
                self._now = self._base.replace(given).replace(self._own)
                self._given = given
        except Exception as error:  # what was in force stays in force
            _log.warning("breaker_overrides_not_read", error=type(error).__name__)
