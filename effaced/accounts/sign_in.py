"""Signing in with e-mail address and password."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced import clock
from effaced.accounts.officers import find_officer
from effaced.accounts.passwords import hash_password, needs_rehash, verify_password
from effaced.accounts.tables import Officer
from effaced.audit.append import append_one
from effaced.audit.events import SignedIn, SignInRefused

FAILURES_ALLOWED = 5
LOCKED_FOR = timedelta(minutes=15)
# One sentence for every reason, so that nobody learns from it which addresses exist.
REFUSED = (
    "E-mail address or password is wrong. After 5 wrong passwords in a row, wait 15 minutes and try again."
)


@dataclass(frozen=True, slots=True)
class SignInResult:
    """The officer who may come in, or nobody and what to tell them."""

    officer: Officer | None
    message: str


def sign_in(session: Session, *, email: str, password: str) -> SignInResult:
    """Check the credentials. Wrong ones don't raise: the caller commits, and with it the failure's count."""
    officer = find_officer(session, email)
    checked_hash = officer.password_hash if officer else None
    right = verify_password(checked_hash, password)
    if officer is not None:
        # Checking takes a while and is done without the lock. Whoever guesses many at a time still has
        # to line up here, and a right guess counts only if the wrong ones before it have not locked.
        _lock(session, officer)
    why = _objection(officer, right=right, checked_hash=checked_hash)
    if officer is None or why is not None:
        return _refuse(session, officer, why or "unknown_officer")
    officer.failed_sign_ins, officer.locked_until = 0, None
    officer.last_sign_in_at = clock.now()
    if needs_rehash(officer.password_hash):
        officer.password_hash = hash_password(password)
    append_one(session, SignedIn(officer_id=officer.id), actor=f"officer:{officer.id}")
    return SignInResult(officer, "")


def _lock(session: Session, officer: Officer) -> None:
    session.execute(
        select(Officer)
        .where(Officer.id == officer.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()


def _objection(officer: Officer | None, *, right: bool, checked_hash: str | None) -> str | None:
    """Why not, as a word for the trail."""
    if officer is None:
        return "unknown_officer"
    if not officer.active:
        return "inactive"
    if officer.locked_until is not None and officer.locked_until > clock.now():
        return "locked"
    if not right or officer.password_hash != checked_hash:
        return "wrong_password"
    return None


def _refuse(session: Session, officer: Officer | None, why: str) -> SignInResult:
    if officer is not None and why == "wrong_password":
        officer.failed_sign_ins += 1
        if officer.failed_sign_ins >= FAILURES_ALLOWED:
            # The count starts anew after the lock.
            officer.failed_sign_ins, officer.locked_until = 0, clock.now() + LOCKED_FOR
    append_one(session, SignInRefused(officer_id=officer.id if officer else None, why=why))
    return SignInResult(None, REFUSED)
