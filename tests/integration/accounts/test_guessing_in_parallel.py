"""A lock-out that holds when many guesses come at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import func, select

from effaced.accounts.officers import create_officer
from effaced.accounts.sign_in import sign_in
from effaced.accounts.tables import Officer
from effaced.audit.tables import AuditEvent
from effaced.db import Database
from effaced.model import Role

EMAIL, PASSWORD = "ada@example.org", "correct horse battery"


def test_no_more_than_five_of_many_parallel_guesses_count(db: Database) -> None:
    with db.begin() as session:
        create_officer(session, email=EMAIL, name="Ada", role=Role.OFFICER, password=PASSWORD, actor="cli")

    def guess(number: int) -> bool:
        with db.begin() as session:
            return sign_in(session, email=EMAIL, password=f"guess {number}").officer is not None

    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(guess, range(12)))

    with db.begin() as session:
        reasons = session.scalars(select(AuditEvent).where(AuditEvent.type == "SIGN_IN_REFUSED")).all()
        counted = [event.payload["why"] for event in reasons]
        assert (counted.count("wrong_password"), counted.count("locked")) == (5, 7)
        assert session.scalar(select(func.count()).where(Officer.locked_until.is_not(None))) == 1
        assert sign_in(session, email=EMAIL, password=PASSWORD).officer is None
