"""When to try again, and when to stop."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from effaced.core import retry_defaults as defaults
from effaced.core.arguments import checked, require_positive
from effaced.core.errors import Refused
from effaced.core.strict import Strict, problems_of

DAY = 86_400.0
# What a policy can speak about; any other status is final, or the resolver's own business.
RETRYABLE = (408, 429, *range(500, 600))
# Fields that the sender of a request may not set for it: a resolver with `idempotent: false` is the
# operator's word that a second call does harm.
OPERATORS_ONLY = ("retry_non_idempotent",)
Chance = Callable[[], float]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,126}")


class BackoffStrategy(StrEnum):
    """How waits grow from one attempt to the next."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"


class RetryPolicy(Strict):
    """How often, how soon and for how long a call is retried. Times are in seconds.

    `timeout` is the total time a call may take with all its attempts and the waits between them.
    """

    max_attempts: int = Field(default=defaults.MAX_ATTEMPTS, strict=True, ge=1, le=50)
    backoff_strategy: BackoffStrategy = BackoffStrategy.EXPONENTIAL
    base_delay: float = Field(
        default=float(defaults.BASE_DELAY_SECONDS), strict=True, gt=0, le=DAY, allow_inf_nan=False
    )
    multiplier: float = Field(default=2.0, strict=True, gt=1, le=10, allow_inf_nan=False)
    max_backoff_delay: float = Field(
        default=float(defaults.MAX_DELAY_SECONDS),
        strict=True,
        gt=0,
        le=DAY,
        allow_inf_nan=False,
        validate_default=True,
    )
    jitter: bool = Field(default=False, strict=True)
    retry_status_codes: tuple[int, ...] = RETRYABLE
    timeout: float = Field(
        default=defaults.MAX_AGE_DAYS * DAY, strict=True, gt=0, le=90 * DAY, allow_inf_nan=False
    )
    retry_non_idempotent: bool = Field(default=False, strict=True)

    @field_validator("max_backoff_delay")
    @classmethod
    def _at_least_base_delay(cls, cap: float, info: ValidationInfo) -> float:
        if cap < info.data.get("base_delay", 0):
            raise ValueError("must be at least base_delay")
        return cap

    @field_validator("retry_status_codes", mode="before")
    @classmethod
    def _retryable(cls, codes: object) -> tuple[int, ...]:
        listed = codes if isinstance(codes, list | tuple | set | frozenset) else [codes]
        if not all(type(code) is int and code in RETRYABLE for code in listed):
            raise ValueError("must be a list of any of 408, 429 and 500 to 599")
        return tuple(sorted(set(listed)))

    def calculate_delay(self, attempt: int, *, chance: Chance = random.random) -> float:
        """The wait after that attempt, counted from one: base_delay after the first, never above the cap.

        Jitter draws from half to one and a half times the wait, as far as the cap lets it.
        """
        delay = _delay(
            self.backoff_strategy, self.base_delay, self.multiplier, self.max_backoff_delay, attempt
        )
        if not self.jitter:
            return delay
        least, most = delay / 2, min(delay * 1.5, self.max_backoff_delay)
        return min(least + (most - least) * chance(), self.max_backoff_delay)

    def wait(self, attempt: int) -> timedelta:
        return timedelta(seconds=self.calculate_delay(attempt))

    @property
    def max_age(self) -> timedelta:
        return timedelta(seconds=self.timeout)

    def changed(self, changes: Mapping[str, Any]) -> RetryPolicy:
        """The same policy with these fields changed.

        If only one of the two delays changes, the other is adjusted to fit.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields} | dict(changes)
        return type(self).model_validate(_fitting(fields, changes))


# Of a request's own execution, where the database was away or a lock was not given in time.
EXECUTION = RetryPolicy(
    max_attempts=defaults.EXECUTION_ATTEMPTS,
    backoff_strategy=BackoffStrategy.LINEAR,
    base_delay=float(defaults.EXECUTION_DELAY_SECONDS),
)


def check_changes(changes: Mapping[str, Any], *, under: str = "") -> dict[str, Any]:
    """Check changed fields, and return them as they are stored. Refuses unknown fields and values by name."""
    defaults = {name: field.default for name, field in RetryPolicy.model_fields.items()}
    try:
        checked = RetryPolicy.model_validate(_fitting(defaults | dict(changes), changes))
    except ValidationError as error:
        dot = f"{under}." if under else ""
        problems = [
            # An unknown name may be anything.
            replace(each, where=f"{dot}{each.where if _NAME.fullmatch(each.where) else '(unprintable)'}")
            for each in problems_of(error, RetryPolicy)
            # The other delay gave way, and may be wrong with it.
            if changes.keys() & {each.where, each.where.partition(".")[0]}
        ]
        raise Refused("The retry policy is invalid.", problems=problems) from None
    return checked.model_dump(mode="json", include=set(changes))


def _fitting(fields: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """An own base may be longer than the common cap, and an own cap shorter than the common base."""
    both = base, cap = fields["base_delay"], fields["max_backoff_delay"]
    given = [name for name in ("base_delay", "max_backoff_delay") if name in changes]
    if len(given) == 1 and all(isinstance(each, int | float) for each in both) and base > cap:
        return fields | dict.fromkeys(("base_delay", "max_backoff_delay"), fields[given[0]])
    return fields


def _delay(strategy: BackoffStrategy, base: float, multiplier: float, cap: float, attempt: int) -> float:
    if attempt < 1:
        raise ValueError("attempt counts from one")
    match strategy:
        case BackoffStrategy.EXPONENTIAL:
            try:
                return min(base * multiplier ** (attempt - 1), cap)
            except OverflowError:  # beyond any cap
                return cap
        case BackoffStrategy.LINEAR:
            return min(base * attempt, cap)
        case BackoffStrategy.FIXED:
            return min(base, cap)


@checked
@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Doubling delays up to a ceiling, without jitter, and how long a claim lasts."""

    base_delay: timedelta = timedelta(seconds=defaults.BASE_DELAY_SECONDS)
    max_delay: timedelta = timedelta(seconds=defaults.MAX_DELAY_SECONDS)
    lease: timedelta = timedelta(seconds=defaults.LEASE_SECONDS)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.base_delay <= self.max_delay <= timedelta(hours=24):
            raise ValueError("base_delay must be positive and at most max_delay, max_delay at most 24 hours")
        require_positive("BackoffPolicy", lease=self.lease)

    def delay(self, attempts: int) -> timedelta:
        """The wait after the n-th attempt: base_delay after the first, doubling from there."""
        base, cap = self.base_delay.total_seconds(), self.max_delay.total_seconds()
        return timedelta(seconds=_delay(BackoffStrategy.EXPONENTIAL, base, 2.0, cap, attempts))

    def policy(self, *, max_attempts: int, max_age: timedelta) -> RetryPolicy:
        """These delays as a retry policy."""
        return RetryPolicy(
            max_attempts=max_attempts,
            base_delay=self.base_delay.total_seconds(),
            max_backoff_delay=self.max_delay.total_seconds(),
            timeout=max_age.total_seconds(),
        )


def status_ranges(codes: Iterable[int]) -> str:
    """408, 429, 500 to 599"""
    found: list[list[int]] = []
    for code in sorted(codes):
        if found and code == found[-1][-1] + 1:
            found[-1][1:] = [code]
        else:
            found.append([code])
    return ", ".join(" to ".join(map(str, each)) for each in found) or "none"
