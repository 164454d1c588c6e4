"""Signing in with e-mail address and password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil
from threading import BoundedSemaphore
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.accounts.officers import find_officer
from effaced.accounts.passwords import AT_ONCE, hash_password, needs_rehash, verify_password
from effaced.accounts.refusals import record_refusal
from effaced.accounts.tables import Officer
from effaced.accounts.throttle import limits_for, refund_attempt, reserve_try, time_to_wait
from effaced.audit.append import append_one
from effaced.audit.events import SignedIn
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.core.errors import Unavailable

# One sentence for every reason, so that nobody learns from it which addresses exist.
REFUSED = (
    "E-mail address or password is wrong. After 5 wrong passwords in a row, wait 15 minutes and try again."
)
# Those whose password is being checked, and as many who wait for that. Others would only occupy threads.
_room = BoundedSemaphore(2 * AT_ONCE)


@dataclass(frozen=True, slots=True)
class Device:
    """A browser from which an officer has signed in before."""

    officer_id: UUID
    id: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """What somebody sent, and from where."""

    email: str = field(repr=False)
    password: str = field(repr=False)
    address: str = field(repr=False)
    device: Device | None = None


@dataclass(frozen=True, slots=True)
class SignInResult:
    """The officer who is signed in, or None and the message to show."""

    officer: Officer | None
    message: str
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class _Check:
    """A password that was checked against the hash that was stored at that moment."""

    right: bool
    against: str | None
    rehashed: str | None


class SignInBusy(Unavailable):
    """More simultaneous sign-ins than passwords can be checked."""


def sign_in(database: Database, keyring: Keyring, attempt: Attempt) -> SignInResult:
    """Check the credentials. Wrong ones don't raise; they are counted.

    Checking a password is slow on purpose, so it happens between two short transactions. The first one
    counts the attempt, so that many simultaneous ones can't exceed a limit.
    """
    with database.read() as session:
        officer = find_officer(session, attempt.email)
        known = attempt.device is not None and officer is not None and attempt.device.officer_id == officer.id
        device = attempt.device.id if known and attempt.device else None
        limits = limits_for(keyring, email=attempt.email, address=attempt.address, device=device)
        wait = time_to_wait(session, limits)
    if wait is not None:
        return _throttled(wait)
    with _password_check_slot():
        with database.begin() as session:
            wait = reserve_try(session, limits)
        if wait is not None:
            return _throttled(wait)
        check = _check_password(officer, attempt.password)
    with database.begin() as session:
        officer = find_officer(session, attempt.email, lock=True)
        why = _refusal_reason(officer, check)
        if officer is None or why is not None:
            record_refusal(session, officer.id if officer else None, why or "unknown_officer")
            return SignInResult(None, REFUSED)
        refund_attempt(session, limits)
        _record_sign_in(session, officer, check)
        return SignInResult(officer, "")


@contextmanager
def _password_check_slot() -> Iterator[None]:
    if not _room.acquire(blocking=False):
        raise SignInBusy("Many people are signing in at this moment. Try again in a few seconds.")
    try:
        yield
    finally:
        _room.release()


def _check_password(officer: Officer | None, password: str) -> _Check:
    against = officer.password_hash if officer else None
    right = verify_password(against, password)
    weak = right and against is not None and needs_rehash(against)
    return _Check(right, against, hash_password(password) if weak else None)


def _refusal_reason(officer: Officer | None, check: _Check) -> str | None:
    """Why the sign-in is refused, as a code for the trail; None if it is not."""
    if officer is None:
        return "unknown_officer"
    if not officer.active:
        return "inactive"
    if not check.right or officer.password_hash != check.against:
        return "wrong_password"
    return None


def _record_sign_in(session: Session, officer: Officer, check: _Check) -> None:
    officer.last_sign_in_at = clock.now()
    officer.password_hash = check.rehashed or officer.password_hash
    append_one(session, SignedIn(officer_id=officer.id), actor=f"officer:{officer.id}")


def _throttled(wait: timedelta) -> SignInResult:
    minutes = ceil(wait.total_seconds() / 60)
    unit = "minute" if minutes == 1 else "minutes"
    return SignInResult(None, f"Too many failed sign-ins. Try again in {minutes} {unit}.", retry_after=wait)
