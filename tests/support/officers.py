"""Officers for tests that are not about passwords: hashing one is slow on purpose, so it is done once."""

from __future__ import annotations

from functools import cache

from sqlalchemy.orm import Session

from effaced.accounts.passwords import hash_password
from effaced.accounts.tables import Officer
from effaced.core import clock
from effaced.model import Role, new_id

PASSWORD = "a-long-enough-password"
_hashed = cache(hash_password)


def new_officer(
    email: str, *, name: str = "", role: Role = Role.OFFICER, password: str = PASSWORD
) -> Officer:
    """An officer as `create_officer` makes them, but with no event in the trail."""
    return Officer(
        id=new_id(),
        email=email,
        name=name or email.partition("@")[0].capitalize(),
        role=role,
        password_hash=_hashed(password),
        created_at=clock.now(),
        session_epoch=0,
        active=True,
    )


def add_officer(session: Session, name: str, role: Role = Role.OFFICER) -> Officer:
    officer = new_officer(f"{name}@office.example", name=name, role=role)
    session.add(officer)
    session.flush()
    return officer
