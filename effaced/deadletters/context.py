"""What a dead letter may hold besides its columns: named counts and words, and nothing else.

Messages, bodies and whatever else a failure comes with may name a person. So there is no place for them:
a key that is not listed here is refused, with its name and without its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from effaced.core.errors import Problem, Refused
from effaced.model import OutboxOperation, OutboxStatus

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CODE = re.compile(r"[A-Za-z_][A-Za-z0-9_.:\-]*")
_WHO = re.compile(r"[A-Za-z0-9_:\-]{1,80}")
_MOST = 2**31 - 1
# The key of the context under which every failure is listed, once there was a second one.
FAILURES, MOST_FAILURES = "failures", 50
Check = Callable[[Any], bool]
Facts = dict[str, Any]


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _status_code(value: Any) -> bool:
    return type(value) is int and 100 <= value <= 599


def _uuid(value: Any) -> bool:
    return isinstance(value, UUID) or (isinstance(value, str) and as_uuid(value) is not None)


def _one_of(*words: str) -> Check:
    return lambda value: isinstance(value, str) and value in words


_OPERATION = _one_of(*OutboxOperation)
# Of each argument: the keys that are kept, and what their values must be.
ALLOWED: dict[str, dict[str, Check]] = {
    "snapshot_data": {
        "attempts": _count,
        "crashes": _count,
        "times_parked": _count,
        "operation": _OPERATION,
        "entry_status": _one_of(*OutboxStatus),
    },
    "request_data": {"operation": _OPERATION, "attempt": _count},
    "response_data": {"status_code": _status_code, "latency_ms": _count, "retry_after_s": _count},
    "metadata": {
        "previous_total_retries": _count,
        "force_redrive_count": _count,
        "failed_replays": _count,
        "same_error": _count,
        "reopened": _count,
        "redrive_id": _uuid,
    },
    "entity_refs": {"entry_id": _uuid, "delivery_id": _uuid, "request_id": _uuid},
    "error_details": {"attempts": _count, "status_code": _status_code},
}


def checked(argument: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values as they may be kept. Refuses every other key by its name."""
    allowed = ALLOWED[argument]
    problems = []
    for key, value in (values or {}).items():
        where = f"{argument}.{_shown(key)}"
        if key not in allowed:
            problems.append(Problem(where, f"is not kept; only {', '.join(allowed)} are"))
        elif not allowed[key](value):
            problems.append(Problem(where, "has a value of the wrong kind"))
    if problems:
        raise Refused("A dead letter does not keep this:", problems=problems)
    return {key: str(value) if isinstance(value, UUID) else value for key, value in (values or {}).items()}


def with_failure(context: Mapping[str, Any] | None, before: Facts, latest: Facts) -> Facts:
    """The context after another failure: the latest facts, and under `failures` those of each one.

    `before` are the facts of the failure that the dead letter was about until now. Nothing is removed, and
    tables in which rows were found stay named; of very many failures the first and the last ones are listed.
    """
    known = dict(context or {})
    failures = [*(known.get(FAILURES) or [_present(before)]), _present(latest)]
    if len(failures) > MOST_FAILURES:
        failures = [failures[0], *failures[1 - MOST_FAILURES :]]
    if "attempts" in latest:
        known["attempts"] = latest["attempts"]
    if tables := {*known.get("tables", ()), *latest.get("tables", ())}:
        known["tables"] = sorted(tables)
    return known | {FAILURES: failures}


def _present(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if value not in (None, "", (), [])}


def no_message(argument: str, text: str) -> None:
    """An error's message may say anything about anybody: the class name and the code have to do."""
    if text:
        said = "is not kept: messages may name a person; use failure_type and error_code"
        raise Refused(f"The {argument} {said}.", problems=[Problem(argument, said)])


def code(argument: str, text: str, longest: int, *, needed: bool = False) -> str:
    """A machine word such as a class name. Has no room for an e-mail address or a sentence."""
    if (not text and not needed) or (len(text) <= longest and _CODE.fullmatch(text)):
        return text
    said = f"must be a word of at most {longest} letters, digits and _ . : -"
    raise Refused(f"The {argument} {said}.", problems=[Problem(argument, said)])


def person(given: int | str | None) -> str | None:
    """Who did it, as the trail writes it: an id, never a name."""
    if given is None:
        return None
    if not _WHO.fullmatch(str(given)):
        said = "must be the id of whoever did it, of at most 80 letters, digits and _ : -"
        raise Refused(f"The resolved_by_id {said}.", problems=[Problem("resolved_by_id", said)])
    return str(given)


def as_uuid(text: object) -> UUID | None:
    """The id that a text stands for, if it does."""
    try:
        return UUID(str(text))
    except ValueError:
        return None


def _shown(key: object) -> str:
    # A key may itself be somebody's address; only what looks like a name is repeated.
    return str(key) if _NAME.fullmatch(str(key)) else "(unprintable)"
