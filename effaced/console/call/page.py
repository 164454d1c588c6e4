"""One external call as its request's page shows it: where it stands, and what a person can do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy.orm import Session

from effaced.console.current import runtime
from effaced.console.words import Station
from effaced.model import OutboxOperation, OutboxStatus, Verification
from effaced.outbox.flow import ALL, Pause, pauses
from effaced.outbox.read import EntryLine
from effaced.resolvers.read_backs import ReadBack, read_backs
from effaced.triage.systems import manual_resolvers

_WAITING = (OutboxStatus.PENDING, OutboxStatus.FAILED)


@dataclass(frozen=True, slots=True)
class CallView:
    """`state` is the entry's status, or what says more. `instructions` are the resolver's for a person.

    `unproven`: it was confirmed by a read-back that is not proven to tell who is there.
    """

    entry: EntryLine
    state: StrEnum
    max_attempts: int
    by_hand: bool
    instructions: str | None
    unproven: bool = False

    @property
    def for_a_person(self) -> bool:
        """Whether somebody may do it by hand: it is parked for that, was abandoned, or is still there."""
        return self.entry.unconfirmed or self._by_hand

    @property
    def _by_hand(self) -> bool:
        return self.entry.attestable and (self.by_hand or self.entry.status is OutboxStatus.ABANDONED)

    @property
    def corrects(self) -> bool:
        return self.entry.operation is OutboxOperation.RECTIFY


def call_views(session: Session, entries: Iterable[EntryLine]) -> tuple[CallView, ...]:
    registry, paused = runtime().registry, pauses(session)
    names, proofs = manual_resolvers(registry), read_backs(session, registry, runtime().keyring)

    def view(entry: EntryLine) -> CallView:
        known = registry.get(entry.resolver) if entry.resolver in registry else None
        resolver: Any = known.resolver if known else None
        return CallView(
            entry=entry,
            state=_state(entry, entry.resolver in names, paused),
            max_attempts=(known.limits.max_attempts if known else None) or runtime().settings.max_attempts,
            by_hand=entry.resolver in names,
            instructions=getattr(resolver, "instructions", None),
            unproven=_unproven(entry, proofs.get(entry.resolver)),
        )

    return tuple(view(entry) for entry in entries)


def _unproven(entry: EntryLine, read_back: ReadBack | None) -> bool:
    return entry.verification is Verification.CONFIRMED and read_back is not None and not read_back.proven


def _state(entry: EntryLine, by_hand: bool, paused: Mapping[str, Pause]) -> StrEnum:
    if entry.superseded:
        return Station.SUPERSEDED
    if by_hand and entry.status is OutboxStatus.SCHEDULED:
        return Station.PERSON
    if entry.status in _WAITING and entry.waits_for:
        return Station.AFTER
    if entry.status in _WAITING and (entry.resolver in paused or ALL in paused):
        return Station.PAUSED
    return entry.status
