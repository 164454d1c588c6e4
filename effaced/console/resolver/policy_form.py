"""The form that changes a system's retry policy: what was typed, and the fields that makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from effaced.core.errors import Problem, Refused
from effaced.retries.policy import BackoffStrategy

NUMBERS = ("max_attempts", "base_delay", "multiplier", "max_backoff_delay", "timeout")
CHOICES = {
    "backoff_strategy": [("", "as configured"), *((each.value, each.value) for each in BackoffStrategy)],
    "jitter": [("", "as configured"), ("yes", "yes"), ("no", "no")],
}
_FIELDS = (*NUMBERS, *CHOICES)
# What the form does not offer is kept as it is.
_KEPT = ("retry_status_codes", "retry_non_idempotent")


@dataclass(frozen=True, slots=True)
class PolicyForm:
    """Values as text, an empty one for a field that is left as configured; errors by field."""

    values: Mapping[str, str]
    reason: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> PolicyForm:
        return cls({name: _text(body[name]) for name in _FIELDS if name in body})

    @classmethod
    def typed(cls, form: Mapping[str, str], error: Refused | None = None) -> PolicyForm:
        problems = error.problems if error else ()
        known = {each.where: each.message for each in problems if each.where in _FIELDS}
        rest = {} if known or error is None else {"reason": error.message}
        values = {name: form.get(name, "").strip() for name in _FIELDS}
        return cls(values, form.get("reason", ""), known or rest)

    def changes(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that are to differ; refuses what is no number, by field."""
        found: dict[str, Any] = {name: before[name] for name in _KEPT if name in before}
        problems: list[Problem] = []
        for name in NUMBERS:
            text = self.values.get(name, "").replace(",", ".")
            if not text:
                continue
            try:
                found[name] = int(text) if name == "max_attempts" else float(text)
            except ValueError:
                problems.append(Problem(name, "must be a number"))
        if problems:
            raise Refused("The retry policy is invalid.", problems=problems)
        if self.values.get("backoff_strategy"):
            found["backoff_strategy"] = self.values["backoff_strategy"]
        if self.values.get("jitter"):
            found["jitter"] = self.values["jitter"] == "yes"
        return found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
