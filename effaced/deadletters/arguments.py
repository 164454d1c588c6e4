"""What a dead letter may be given: every argument is checked here, for every caller and every store.

Messages, bodies and whatever else comes with a failure may name a person. So there is no place for them:
words have a fixed shape, and facts are taken by listed keys only. A refusal names the argument and the key,
never the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

from effaced.audit.notes import problem_of_note
from effaced.core.errors import Problem, Refused
from effaced.deadletters.rules import Sla
from effaced.model import DeadLetterDomain, DeadLetterStatus, OutboxOperation, OutboxStatus

E = TypeVar("E", bound=StrEnum)
Check = Callable[[Any], bool]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CODE = re.compile(r"[A-Za-z_][A-Za-z0-9_.:\-]*")
_ACTOR_ID = re.compile(r"[A-Za-z0-9_:\-]{1,80}")
_MAX_INT = 2**31 - 1
_MAX_RETRIES = 100
MAX_DAYS = 36_500
_MAX_MINUTES = MAX_DAYS * 24 * 60
_MAX_FAILURE_TYPE = 255
_LONGEST_SLA = timedelta(days=365)


class InvalidArgument(Refused, ValueError):
    """An argument has a value that it can't have, so nothing was done."""

    def __init__(self, argument: str, rule: str) -> None:
        super().__init__(f"The {argument} {rule}.", problems=[Problem(argument, rule)])


class UnknownFacts(InvalidArgument):
    """Keys or values that a dead letter does not keep."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        Refused.__init__(self, "A dead letter does not keep this:", problems=problems)


def dead_letter_status(word: str) -> DeadLetterStatus:
    return one_of(DeadLetterStatus, "status", word)


def dead_letter_domain(word: str) -> DeadLetterDomain:
    return one_of(DeadLetterDomain, "domain", word)


def one_of(words: type[E], argument: str, word: str) -> E:
    try:
        return words(word)
    except ValueError:
        raise InvalidArgument(argument, f"must be one of {', '.join(words)}") from None


def failure_type(text: str) -> str:
    return code("failure_type", text, _MAX_FAILURE_TYPE, required=True)


def code(argument: str, text: str, longest: int, *, required: bool = False) -> str:
    """A word such as a class name, which can't be an e-mail address or a sentence."""
    if (not text and not required) or (len(text) <= longest and _CODE.fullmatch(text)):
        return text
    raise InvalidArgument(argument, f"must be a word of at most {longest} letters, digits and _ . : -")


def number(argument: str, value: int, most: int = _MAX_INT, *, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InvalidArgument(argument, f"must be a number from {least} to {most}")
    return value


def retries(argument: str, value: int) -> int:
    return number(argument, value, _MAX_RETRIES)


def days(value: int) -> int:
    return number("older_than_days", value, MAX_DAYS)


def minutes(value: int) -> int:
    return number("older_than_minutes", value, _MAX_MINUTES)


def moment(argument: str, value: datetime) -> datetime:
    if value.tzinfo is None or not 1 < value.year < 9999:
        raise InvalidArgument(argument, "must be a moment with a time zone, from the year 2 to 9998")
    return value


def sla(argument: str, waits: Mapping[str, timedelta]) -> Sla:
    """How long dead letters may stay open, by domain; held to what the setting of that name is held to."""
    if set(waits) - set(DeadLetterDomain):
        raise InvalidArgument(argument, f"must be by domain: {', '.join(DeadLetterDomain)}")
    if not all(timedelta(0) < each <= _LONGEST_SLA for each in waits.values()):
        raise InvalidArgument(argument, f"must be longer than zero, up to {_LONGEST_SLA.days} days")
    return waits


def note_text(argument: str, text: str) -> None:
    """An empty text is no note."""
    if text and (said := problem_of_note(text)):
        raise InvalidArgument(argument, said)


def no_message(argument: str, text: str) -> None:
    if text:
        raise InvalidArgument(
            argument, "is not kept: a message may name a person; use failure_type and error_code"
        )


def actor_id(argument: str, given: int | str | None) -> str | None:
    """Who did it, as the audit trail writes it: an id, never a name."""
    if given is not None and not _ACTOR_ID.fullmatch(str(given)):
        raise InvalidArgument(argument, "must be an id of at most 80 letters, digits and _ : -")
    return None if given is None else str(given)


def as_uuid(text: object) -> UUID | None:
    """The id that a text stands for, or None."""
    try:
        return UUID(str(text))
    except ValueError:
        return None


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MAX_INT


def _is_status_code(value: Any) -> bool:
    return type(value) is int and 100 <= value <= 599


def _uuid(value: Any) -> bool:
    return isinstance(value, UUID) or (isinstance(value, str) and as_uuid(value) is not None)


def _among(words: type[StrEnum]) -> Check:
    return lambda value: isinstance(value, str) and value in list(words)


# For each argument the keys that are kept, and a check of their values.
ALLOWED: dict[str, dict[str, Check]] = {
    "snapshot_data": {
        "attempts": _count,
        "crashes": _count,
        "times_parked": _count,
        "operation": _among(OutboxOperation),
        "entry_status": _among(OutboxStatus),
    },
    "request_data": {"operation": _among(OutboxOperation), "attempt": _count},
    "response_data": {"status_code": _is_status_code, "latency_ms": _count, "retry_after_s": _count},
    "metadata": {
        "previous_total_retries": _count,
        "force_redrive_count": _count,
        "failed_replays": _count,
        "same_error": _count,
        "reopened": _count,
        "redrive_id": _uuid,
    },
    "entity_refs": {"entry_id": _uuid, "delivery_id": _uuid, "request_id": _uuid},
    "error_details": {"attempts": _count, "status_code": _is_status_code},
}
_ENTITIES = ("entry", "delivery", "request")
# What the work of a dead letter is, by which it is found again; in the other domains it is an entry.
_WORK = {DeadLetterDomain.MESSAGE: "delivery_id", DeadLetterDomain.LOCAL_EXECUTION: "request_id"}


def facts(argument: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values to keep. Refuses every key that is not listed."""
    allowed = ALLOWED[argument]
    problems = []
    for key, value in (values or {}).items():
        where = f"{argument}.{_printable_key(key)}"
        if key not in allowed:
            problems.append(
                Problem(where, f"is not kept; only {', '.join(allowed)} are", code="unknown_field")
            )
        elif not allowed[key](value):
            problems.append(Problem(where, "has a value of the wrong kind", code="wrong_type"))
    if problems:
        raise UnknownFacts(problems)
    return {key: str(value) if isinstance(value, UUID) else value for key, value in (values or {}).items()}


def linked_ids(
    domain: DeadLetterDomain,
    entity_type: str | None,
    entity_id: str | None,
    refs: Mapping[str, Any] | None,
) -> tuple[UUID | None, UUID | None]:
    """What a dead letter is about: an entry or a delivery, as its domain has it, and a request.

    Nothing else can be linked.
    """
    given = dict(refs or {})
    if entity_type is not None or entity_id is not None:
        if entity_type not in _ENTITIES:
            raise InvalidArgument("entity_type", "must be entry, delivery or request")
        if as_uuid(entity_id) is None:
            raise InvalidArgument("entity_id", f"must be the id of the {entity_type}")
        given[f"{entity_type}_id"] = entity_id
    found = {name: as_uuid(value) for name, value in facts("entity_refs", given).items()}
    allowed = {_WORK.get(domain, "entry_id"), "request_id"}
    if set(found) - allowed:
        argument = "entity_refs" if set(refs or {}) - allowed else "entity_type"
        raise InvalidArgument(argument, f"can link {domain} to {' and '.join(sorted(allowed))} only")
    return found.get("entry_id") or found.get("delivery_id"), found.get("request_id")


def _printable_key(key: object) -> str:
    # A key may itself be somebody's address; only what looks like a name is repeated.
    return str(key) if _NAME.fullmatch(str(key)) else "(unprintable)"
