"""A person stops a resolver, or all of them, and lets them go on."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from effaced.audit.notes import write_note
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.errors import Conflict, Problem, Refused
from effaced.outbox import flow

MOST_HOURS = 24 * 90


def pause(
    session: Session, keyring: Keyring, resolver: str, *, actor: str, reason: str, hours: float | None = None
) -> None:
    """Have nothing more claimed of the resolver (`*`: of any), for so many hours or until it is resumed."""
    if hours is not None and not 0 < hours <= MOST_HOURS:
        said = f"must be more than 0 and at most {MOST_HOURS}"
        raise Refused(
            f"The hours {said.replace('must', 'of a pause must')}.",
            problems=[Problem("hours", said, code="out_of_range")],
        )
    note = write_note(session, keyring, reason, author=actor)
    until = dbtime.now(session) + timedelta(hours=hours) if hours is not None else None
    if not flow.pause(session, resolver, actor=actor, note=note, until=until):
        raise Conflict(f"{_name_is(resolver)} paused already.")


def resume(session: Session, keyring: Keyring, resolver: str, *, actor: str, reason: str) -> None:
    """Let the resolver be called again, and notify the workers of what has waited."""
    note = write_note(session, keyring, reason, author=actor)
    if not flow.resume(session, resolver, actor=actor, note=note):
        raise Conflict(f"{_name_is(resolver)} not paused.")


def _name_is(resolver: str) -> str:
    return "Everything together is" if resolver == flow.ALL else f"'{resolver}' is"
