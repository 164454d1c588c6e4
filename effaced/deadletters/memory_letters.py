"""The letters of the in-memory repository: finding, changing and removing them under one lock."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from effaced.core import clock
from effaced.core.errors import Conflict
from effaced.core.log import get_logger
from effaced.deadletters.change import Change, changed_values
from effaced.deadletters.context import as_uuid
from effaced.deadletters.data import FailedOperationData
from effaced.deadletters.letter import Values, as_data
from effaced.deadletters.linked_work import WHY_NOT_CLOSED
from effaced.deadletters.rules import (
    ACTIVE,
    ARCHIVED,
    PERMANENTLY_FAILED,
    REJECTED,
    RESOLVED,
    SETTLED,
    TWICE,
    domain_of,
    evict_choice,
    reopened,
    status_of,
)
from effaced.model import DeadLetterStatus

_log = get_logger(__name__)
Condition = Callable[[Values], bool]


@dataclass(slots=True)
class LinkedWork:
    """The work behind dead letters, by the id of the entry, delivery or request: under way, and not done."""

    under_way: set[UUID] = field(default_factory=set)
    not_done: set[UUID] = field(default_factory=set)


class MemoryLetters:
    """Letters by id, as the columns they would be. What changes something is called under the lock."""

    def __init__(self, linked_work: LinkedWork) -> None:
        self._linked_work = linked_work
        self._letters: dict[UUID, Values] = {}
        self._notes: dict[UUID, str] = {}
        self._lock = threading.RLock()

    def _keep(self, values: Values) -> None:
        with self._lock:
            link = values["entry_id"], values["domain"]
            if link[0] and any((each["entry_id"], each["domain"]) == link for each in self._letters.values()):
                raise Conflict(TWICE)
            self._letters[values["id"]] = values

    def _one(self, id: str) -> Values | None:
        known = as_uuid(id)
        return self._letters.get(known) if known else None

    def _where(self, fits: Condition) -> list[Values]:
        with self._lock:
            found = [each for each in self._letters.values() if fits(each)]
        return sorted(found, key=lambda each: (each["created_at"], each["id"]))

    def _oldest(self, fits: Condition, limit: int | None = None) -> list[FailedOperationData]:
        with self._lock:
            return [self._out(each) for each in self._where(fits)[:limit]]

    def _expired(self, over: Callable[[datetime], bool]) -> list[FailedOperationData]:
        found = self._oldest(lambda each: each["expires_at"] is not None and over(each["expires_at"]))
        return sorted(found, key=lambda each: (each.expires_at, UUID(each.id)))

    def _change(self, letter: Values, wanted: Change, note: str = "") -> None:
        if letter["status"] in SETTLED and wanted.to not in SETTLED:
            letter["marks"] = reopened(letter["marks"])
        letter.update(changed_values(wanted))
        if wanted.to not in SETTLED:
            self._notes.pop(letter["id"], None)
        if note and wanted.to in (*SETTLED, PERMANENTLY_FAILED):
            self._notes[letter["id"]] = note

    def _refuse_undone(self, letter: Values, to: DeadLetterStatus) -> None:
        if to in SETTLED and self._not_done(letter):
            raise Conflict(WHY_NOT_CLOSED[letter["domain"]])

    def _not_done(self, letter: Values) -> bool:
        return linked_to(letter) in self._linked_work.not_done

    def _archivable(self, letter: Values, since: datetime) -> bool:
        settled = letter["status"] in (RESOLVED, REJECTED) and letter["resolved_at"] <= since
        return settled and not self._not_done(letter)

    def _removable(self, letter: Values) -> bool:
        return letter["status"] is ARCHIVED and not self._not_done(letter)

    def _purgeable(self, older_than_days: int) -> list[Values]:
        since = clock.now() - timedelta(days=older_than_days)
        return self._where(lambda each: self._removable(each) and each["archived_at"] <= since)

    def _evictable(self, count: int, domain: str | None) -> list[Values]:
        evict_choice(count)
        fits = matching(domain=domain)
        chosen = self._where(lambda each: self._removable(each) and fits(each))[:count]
        if len(chosen) < count:
            unresolved = len(self._where(is_active))
            _log.error("dead_letters_not_evicted", asked=count, evicted=len(chosen), unresolved=unresolved)
        return chosen

    def _remove(self, letters: list[Values]) -> int:
        for letter in letters:
            del self._letters[letter["id"]]
            self._notes.pop(letter["id"], None)
        return len(letters)

    def _out(self, letter: Values) -> FailedOperationData:
        return as_data(letter, self._notes.get(letter["id"], ""))


def matching(
    status: str | None = None, domain: str | None = None, failure_type: str | None = None
) -> Condition:
    wanted: dict[str, object] = {}
    if status is not None:
        wanted["status"] = status_of(status)
    if domain is not None:
        wanted["domain"] = domain_of(domain)
    if failure_type is not None:
        wanted["failure_type"] = failure_type
    return lambda each: all(each[name] == value for name, value in wanted.items())


def linked_to(letter: Values) -> UUID | None:
    """What a dead letter is about; of a local execution that is the request."""
    link: UUID | None = letter["entry_id"] or letter["request_id"]
    return link


def is_active(letter: Values) -> bool:
    return letter["status"] in ACTIVE


def counts(name: str, letters: Iterable[Values]) -> dict[str, int]:
    return dict(Counter(str(each[name]) for each in letters))
