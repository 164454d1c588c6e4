"""What has served its time is forgotten, and nothing else."""

from __future__ import annotations

from datetime import timedelta

from requests_cast import Office
from sqlalchemy import select

from effaced.core import clock
from effaced.requests.housekeeping import ANSWERS_KEPT, delete_old_answers
from effaced.requests.tables import IdempotentAnswer


def test_old_answers_go_and_young_ones_stay(office: Office) -> None:
    key = office.key()
    with office.db.begin() as session:
        for name, age in (("old", ANSWERS_KEPT + timedelta(days=1)), ("young", timedelta(days=1))):
            session.add(
                IdempotentAnswer(
                    api_key_id=key.id,
                    key_hmac=name,
                    body_hmac="b",
                    status_code=201,
                    answer={},
                    created_at=clock.now() - age,
                )
            )
    with office.db.begin() as session:
        assert delete_old_answers(session) == 1
    with office.db.read() as session:
        assert session.scalars(select(IdempotentAnswer.key_hmac)).all() == ["young"]
