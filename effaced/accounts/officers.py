"""Officers: the people who work in the console."""

from __future__ import annotations

import re
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from effaced.accounts.passwords import hash_password, password_problems
from effaced.accounts.tables import Officer
from effaced.audit.append import append_one
from effaced.audit.events import OfficerCreated, OfficerDeactivated, PasswordChanged
from effaced.core import clock
from effaced.core.errors import Conflict, Problem, Refused
from effaced.model import Role, new_id

# Whether an address really exists only a message can tell; this catches what was typed into the wrong field.
_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f\ud800-\udfff]+@[^@\s\x00-\x1f\x7f\ud800-\udfff]+")
_LONGEST_EMAIL, _LONGEST_NAME = 254, 120
# `may_decide` for queries.
MAY_DECIDE = (Officer.active.is_(True), Officer.role != Role.AUDITOR)


def create_officer(
    session: Session, *, email: str, name: str, role: Role, password: str, actor: str
) -> Officer:
    """A new officer. Refuses with every wrong field at once; an e-mail address can be taken only once."""
    email, name = normalise_email(email), name.strip()
    problems = []
    if not is_email(email):
        problems.append(Problem("email", f"must be an e-mail address of at most {_LONGEST_EMAIL} characters"))
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        problems.append(Problem("name", f"must have 1 to {_LONGEST_NAME} characters on one line"))
    problems += password_problems(password)
    if problems:
        raise Refused("The officer can't be created:", problems=problems)
    officer = Officer(
        id=new_id(),
        email=email,
        name=name,
        role=role,
        password_hash=hash_password(password),
        created_at=clock.now(),
    )
    try:
        with session.begin_nested():
            session.add(officer)
    except IntegrityError:
        raise Conflict(
            "There is an officer with this e-mail address already.",
            problems=[Problem("email", "is taken", code="taken")],
        ) from None
    append_one(session, OfficerCreated(officer_id=officer.id, role=role), actor=actor)
    return officer


def get_officer(session: Session, officer_id: UUID) -> Officer | None:
    """The officer, unless there is none or they were deactivated."""
    officer = session.get(Officer, officer_id)
    return officer if officer is not None and officer.active else None


def may_decide(officer: Officer) -> bool:
    """Whether their decisions count."""
    return officer.active and officer.role is not Role.AUDITOR


def lock_deciding_officer(session: Session, officer_id: UUID) -> Officer | None:
    """The officer, if their decisions count now, and then until the transaction ends."""
    query = select(Officer).where(Officer.id == officer_id, *MAY_DECIDE).with_for_update(read=True)
    return session.scalar(query.execution_options(populate_existing=True))


def find_officer(session: Session, email: str, *, lock: bool = False) -> Officer | None:
    """The officer with this e-mail address, active or not; None for anything that is no address."""
    email = normalise_email(email)
    if not is_email(email):
        return None
    query = select(Officer).where(Officer.email == email)
    return session.scalar(query.with_for_update() if lock else query)


def list_officers(session: Session) -> list[Officer]:
    """All officers, by name, those who were deactivated last."""
    return list(session.scalars(select(Officer).order_by(Officer.active.desc(), Officer.name, Officer.id)))


def end_sessions(session: Session, officer_id: UUID) -> None:
    """Sign an officer out everywhere: a cookie that somebody copied opens nothing any more."""
    session.execute(
        update(Officer).where(Officer.id == officer_id).values(session_epoch=Officer.session_epoch + 1)
    )


def set_password(session: Session, officer: Officer, password: str, *, actor: str) -> None:
    """Give a new password. It ends every session that was opened with the old one.

    The hash is computed before the first statement. In a transaction that begins here, nothing is locked
    meanwhile; `officer` may come from an earlier one.
    """
    if problems := password_problems(password):
        raise Refused("The password can't be set:", problems=problems)
    password_hash = hash_password(password)
    officer = session.get_one(Officer, officer.id, with_for_update=True)
    officer.password_hash = password_hash
    officer.session_epoch += 1
    append_one(session, PasswordChanged(officer_id=officer.id), actor=actor)


def deactivate_officer(session: Session, officer: Officer, *, actor: str) -> None:
    """Deactivate the account with immediate effect. Their past actions stay under their name in the trail."""
    if not officer.active:
        raise Conflict("This officer is deactivated already.")
    officer.active = False
    officer.session_epoch += 1
    append_one(session, OfficerDeactivated(officer_id=officer.id), actor=actor)


def normalise_email(email: str) -> str:
    """The one spelling under which an address is kept and looked up."""
    return email.strip().lower()


def is_email(email: str) -> bool:
    return len(email) <= _LONGEST_EMAIL and _EMAIL.fullmatch(email) is not None
