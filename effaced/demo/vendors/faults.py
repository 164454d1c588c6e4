"""What can be wrong with a vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from effaced.core.errors import Refused

Option = str | int | float | bool
_NINETY_DAYS = 90 * 86_400


class FaultKind(StrEnum):
    """One way for a vendor to misbehave."""

    DOWN = "down"
    SLOW = "slow"
    THROTTLED = "throttled"
    FLAKY = "flaky"
    LIES = "lies"
    EXPIRES_ONLY = "expires_only"
    UNAUTHORISED = "unauthorised"
    REJECTS = "rejects"


MEANING = {
    FaultKind.DOWN: "closes the connection (how=close) or answers 503 (how=503)",
    FaultKind.SLOW: "takes its time over every answer",
    FaultKind.THROTTLED: "answers 429 with Retry-After, in seconds or as a date",
    FaultKind.FLAKY: "answers 500 to every n-th call",
    FaultKind.LIES: "says it deleted and keeps the record",
    FaultKind.EXPIRES_ONLY: "deletes nothing at once: 202 with expires_at",
    FaultKind.UNAUTHORISED: "refuses our credentials",
    FaultKind.REJECTS: "refuses the call itself",
}

# Every option a fault takes, with its default.
OPTIONS: dict[FaultKind, dict[str, Option]] = {
    FaultKind.DOWN: {"how": "close"},
    FaultKind.SLOW: {"seconds": 5.0},
    FaultKind.THROTTLED: {"retry_after": 30, "as_date": False},
    FaultKind.FLAKY: {"every": 3},
    FaultKind.LIES: {},
    FaultKind.EXPIRES_ONLY: {"seconds": 60.0},
    FaultKind.UNAUTHORISED: {"status": 401},
    FaultKind.REJECTS: {"status": 400},
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault with its options."""

    kind: FaultKind
    options: Mapping[str, Option] = field(default_factory=dict)

    def number(self, name: str) -> float:
        return float(self.options[name])

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"{name}={value}" for name, value in self.options.items())])


def make_fault(kind: str, options: Mapping[str, object]) -> Fault:
    """The fault of that name. Refuses unknown names and options, saying which there are."""
    if kind not in list(FaultKind):
        raise Refused(f"kind: there is no fault '{kind}'; allowed: {', '.join(FaultKind)}")
    known = OPTIONS[FaultKind(kind)]
    for name in options:
        if name not in known:
            raise Refused(f"{name}: the fault {kind} takes {', '.join(known) or 'no options'}")
    filled = {
        name: _convert_option(default, name, options.get(name, default)) for name, default in known.items()
    }
    return Fault(FaultKind(kind), filled)


def _convert_option(default: Option, name: str, value: object) -> Option:
    """The value of an option, as the type its default has; forms send everything as text."""
    text = str(value).strip()
    if isinstance(default, bool):
        return text.lower() in ("true", "1", "yes", "on")
    if isinstance(default, str):
        if text not in ("close", "503"):
            raise Refused(f"{name}: expected close or 503")
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= _NINETY_DAYS or (name == "every" and number < 1):
        raise Refused(f"{name}: expected a number of 0 to {_NINETY_DAYS} (every: 1 or more)")
    return int(number) if isinstance(default, int) else number


def duration(value: object) -> float:
    """How many seconds a fault stays on."""
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1
    if not 0 < seconds <= _NINETY_DAYS:
        raise Refused(f"for_seconds: expected a number over 0, up to {_NINETY_DAYS}")
    return seconds
