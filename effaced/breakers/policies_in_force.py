"""The policies in force: those of the files, with what was changed at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from effaced.breakers.model import BreakerRole
from effaced.breakers.policy import (
    DEFAULTS,
    BreakerPolicies,
    BreakerPolicy,
    CallLimits,
    Overrides,
    with_changes,
)
from effaced.core import clock
from effaced.core.log import get_logger
from effaced.model import PolicyKind, PolicyScope
from effaced.retries.overrides import list_overrides

_log = get_logger(__name__)
_REFRESH_S = 5.0


def read_overrides(session: Session) -> dict[str, dict[str, Any]]:
    """The breaker fields that were changed at run time, by breaker or under `defaults`."""
    return {
        DEFAULTS
        if each.target.scope is PolicyScope.GLOBAL
        else f"{each.target.scope}:{each.target.key}": dict(each.body)
        for each in list_overrides(session, PolicyKind.BREAKER)
    }


class PoliciesInForce:
    """`read` returns the overrides and `limits` the call limits, both asked every few seconds.

    `update` changes fields in this process only.
    """

    def __init__(
        self,
        base: BreakerPolicies,
        read: Callable[[], Overrides] | None = None,
        limits: Callable[[], Mapping[str, CallLimits]] | None = None,
    ) -> None:
        self._base = self._current = base
        self._read = read
        self._limits = limits
        self._asks = read is not None or limits is not None
        self._overrides: Overrides = {}
        self._call_limits: Mapping[str, CallLimits] = {}
        self._local: dict[str, dict[str, Any]] = {}
        self._refresh_at = 0.0

    def named(self, service_name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        if self._asks and clock.monotonic() >= self._refresh_at:
            self._refresh_at = clock.monotonic() + _REFRESH_S
            self._refresh()
        return self._current.named(service_name, role)

    def update(self, service_name: str, fields: Mapping[str, Any]) -> BreakerPolicy:
        local = {**self._local, service_name: with_changes(self._local.get(service_name) or {}, fields)}
        self._current = self._base.replace(self._overrides, self._call_limits).replace(local)
        self._local = local
        return self.named(service_name)

    def refresh_soon(self) -> None:
        """Read the overrides again at the next call."""
        self._refresh_at = 0.0

    def _refresh(self) -> None:
        try:
            overrides = self._read() if self._read else {}
            limits = self._limits() if self._limits else {}
            if (overrides, limits) != (self._overrides, self._call_limits):
                self._current = self._base.replace(overrides, limits).replace(self._local)
                self._overrides, self._call_limits = overrides, limits
        except Exception as error:  # the previous policies stay in force
            _log.warning("breaker_overrides_not_read", error=type(error).__name__)
