"""Events of dead letters and bulk retries."""

from __future__ import annotations

from uuid import UUID

from effaced.audit.events.base import Code, Event, Noted
from effaced.model import DeadLetterDomain, DeadLetterStatus


class DeadLetterOpened(Event):
    type = "DEAD_LETTER_OPENED"
    dead_letter_id: UUID
    domain: DeadLetterDomain
    error: Code


class DeadLetterDecided(Noted):
    """Somebody resolved, rejected or gave up a letter, took it into review or out of it, or archived it."""

    type = "DEAD_LETTER_DECIDED"
    dead_letter_id: UUID
    prior: DeadLetterStatus
    status: DeadLetterStatus


class DeadLetterAssigned(Event):
    """A letter was given to an officer; with none, to nobody."""

    type = "DEAD_LETTER_ASSIGNED"
    dead_letter_id: UUID
    officer_id: UUID | None = None


class DeadLetterNoted(Noted):
    type = "DEAD_LETTER_NOTED"
    dead_letter_id: UUID


class DeadLettersArchived(Noted):
    type = "DEAD_LETTERS_ARCHIVED"
    count: int


class DeadLetterPurged(Event):
    """An archived letter was removed for good."""

    type = "DEAD_LETTER_PURGED"
    dead_letter_id: UUID
    domain: DeadLetterDomain
    error: Code


class DeadLettersPurged(Noted):
    type = "DEAD_LETTERS_PURGED"
    count: int


class RedriveStarted(Noted):
    """A redrive of a set of dead letters begins; each that is requeued has an event of its own."""

    type = "REDRIVE_STARTED"
    redrive_id: UUID
    chosen: int
    force: bool


class RedriveEnded(Event):
    type = "REDRIVE_ENDED"
    redrive_id: UUID
    requeued: int
    skipped: int
    cancelled: bool
