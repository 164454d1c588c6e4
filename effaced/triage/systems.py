"""The state of each resolver: what waits for it, what failed there, whether it is paused, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.accounts.actors import names_of
from effaced.audit.notes import read_notes
from effaced.breakers.model import host_name, resolver_name
from effaced.core.crypto import Keyring
from effaced.deadletters.read import DeadLetterFilter, count_by
from effaced.deadletters.tables import DeadLetter
from effaced.model import OutboxStatus
from effaced.outbox.absences import Alarm, recent_alarms
from effaced.outbox.due import counts_by_resolver
from effaced.outbox.flow import ALL, Pause, pauses
from effaced.resolvers.manual import KIND as MANUAL
from effaced.resolvers.read_backs import ReadBack, read_backs
from effaced.resolvers.registry import Registered, ResolverRegistry

_OPEN = (OutboxStatus.PENDING, OutboxStatus.FAILED, OutboxStatus.IN_FLIGHT, OutboxStatus.SCHEDULED)


class Ability(StrEnum):
    """What a system can be asked for. `expire`: it deletes nothing on demand, only marks it to go later."""

    ERASE = "erase"
    EXPIRE = "expire"
    RECTIFY = "rectify"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True)
class Paused:
    """A pause with the reason of whoever decided it; None where nobody typed one.

    `by` is the name of `actor`, for people to read.
    """

    resolver: str
    since: datetime
    until: datetime | None
    actor: str
    by: str
    code: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class System:
    """One resolver. `registered` is None for one that is no longer configured and still has entries.

    `read_back` is None for one that has none.
    """

    name: str
    registered: Registered | None
    entries: Mapping[OutboxStatus, int]
    abandoned: int
    paused: Paused | None
    absences: Alarm | None = None
    read_back: ReadBack | None = None

    @property
    def waiting(self) -> int:
        return self.entries[OutboxStatus.PENDING] + self.entries[OutboxStatus.FAILED]

    @property
    def in_flight(self) -> int:
        return self.entries[OutboxStatus.IN_FLIGHT]

    @property
    def parked(self) -> int:
        return self.entries[OutboxStatus.SCHEDULED]

    @property
    def kind(self) -> str:
        return self.registered.kind if self.registered else "not configured"

    @property
    def by_hand(self) -> bool:
        return self.registered is not None and self.registered.kind == MANUAL


def systems(session: Session, registry: ResolverRegistry, keyring: Keyring) -> list[System]:
    """All configured resolvers, then those that only the database has, each with its counts."""
    counts = Counter(counts_by_resolver(session, _OPEN))
    letters = count_by(session, DeadLetter.resolver, DeadLetterFilter())
    paused, alarms = current_pauses(session, keyring), recent_alarms(session)
    configured, proofs = {each.name: each for each in registry}, read_backs(session, registry, keyring)
    others = {name for name, _ in counts} | letters.keys() | paused.keys() - {ALL}
    return [
        System(
            name=name,
            registered=configured.get(name),
            entries={status: counts[name, status] for status in _OPEN},
            abandoned=letters.get(name, 0),
            paused=paused.get(name),
            absences=alarms.get(name),
            read_back=proofs.get(name),
        )
        for name in [*configured, *sorted(others - configured.keys())]
    ]


def abilities_of(each: Registered) -> list[Ability]:
    """What can be asked of the system itself, or of whoever works there by hand."""
    by_hand = each.kind == MANUAL
    can = {
        Ability.ERASE: by_hand or not each.retention_only,
        Ability.EXPIRE: each.retention_only and not by_hand,
        Ability.RECTIFY: each.rectifies,
        Ability.VERIFY: each.verifies,
    }
    return [ability for ability, able in can.items() if able]


def breakers_of(each: Registered) -> tuple[str, ...]:
    """The names of its breakers: its own, then its host's."""
    return (resolver_name(each.name), *([host_name(each.host)] if each.host else ()))


def current_pauses(session: Session, keyring: Keyring) -> dict[str, Paused]:
    """What is paused now, by name; `*` stands for everything."""
    found = pauses(session)
    names = names_of(session, [each.by for each in found.values()])
    reasons = read_notes(session, keyring, [each.note_id for each in found.values() if each.note_id])
    return {name: _as_paused(each, names, reasons) for name, each in found.items()}


def manual_resolvers(registry: ResolverRegistry) -> frozenset[str]:
    """The resolvers whose parked entries wait for a person, not for a date of the vendor's."""
    return frozenset(each.name for each in registry if each.kind == MANUAL)


def _as_paused(each: Pause, names: dict[str, str], reasons: dict[UUID, str]) -> Paused:
    reason = reasons.get(each.note_id) if each.note_id else None
    return Paused(each.resolver, each.at, each.until, each.by, names[each.by], each.code, reason)
