"""Correct me, as officers see it: names of fields, never a value."""

from __future__ import annotations

import re
from dataclasses import replace
from uuid import UUID

from sqlalchemy import insert, select, update

from effaced.core import clock
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus, RequestStatus, new_id
from tests.browser.seed import House, customers
from tests.integration.console.conftest import Visitor, ref_of, status_of

REASON = "Passport seen at the counter."


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def show(visitor: Visitor, house: House, request_id: UUID) -> str:
    return visitor.get(f"/console/requests/{ref_of(house, request_id)}").text


def name_of(house: House, person: int) -> str:
    with house.runtime.db.read() as session:
        return session.scalars(select(customers.c.name).where(customers.c.id == person)).one()


def test_before_approval_the_plan_names_columns_rows_and_systems(house: House, ada: Visitor) -> None:
    page = words(show(ada, house, house.correct(3, name="Zenobia", email="z@example.org")))
    assert "Corrects email name" in page
    assert "customers name, email 1" in page
    assert "Systems to be called crm mailing" in page
    assert "correct; has to be done by hand mailing" in page
    assert "Not affected files payment" in page
    assert "Without a reference to this person archive" in page
    assert "This changes 1 row in 1 table at once and calls 2 external systems." in page
    assert "Approve and correct" in page


def test_a_value_that_is_there_already_changes_no_row(house: House, ada: Visitor) -> None:
    assert "This changes 0 rows in 0 tables" in words(show(ada, house, house.correct(3, name="Person 3")))


def test_no_value_is_on_any_page(house: House, ada: Visitor) -> None:
    request_id = house.correct(3, name="Zenobia", email="z@example.org")
    seen = show(ada, house, request_id)
    house.approve(request_id)
    house.run()
    pages = ["requests?status=all", "abandoned?status=all", "verified", "audit", "resolvers", ""]
    seen += show(ada, house, request_id) + "".join(ada.get(f"/console/{page}").text for page in pages)
    assert name_of(house, 3) == "Zenobia"
    assert "Zenobia" not in seen
    assert "z@example.org" not in seen


def test_approving_corrects_and_says_so(house: House, ada: Visitor) -> None:
    request_id = house.correct(3, name="Zenobia")
    path = f"/console/requests/{ref_of(house, request_id)}"
    ada.post(f"{path}/approve", {"reason": REASON})
    assert name_of(house, 3) == "Zenobia"
    house.run()
    page = words(ada.get(path).text)
    assert "Approved and corrected in your database." in page
    assert "Your database corrected (name): 1 row changed. 1 external call queued." in page
    assert "crm name Done Corrected" in page
    assert status_of(house, request_id) is RequestStatus.COMPLETED


def test_a_correction_that_failed_can_not_be_requeued_and_says_why(house: House, ada: Visitor) -> None:
    request_id = house.correct(3, email="z@example.org")
    house.approve(request_id)
    house.run()
    page = ada.get("/console/abandoned").text
    assert "It can&#39;t be retried: the corrected values were deleted when it failed." in page
    assert 'name="only"' not in page
    assert 'name="ids"' not in page
    assert "Attest<span" in page
    told = words(show(ada, house, request_id))
    assert "send the correction again, or correct it by hand and attest" in told


def test_a_forged_requeue_of_a_correction_is_left_alone_and_named(house: House, ada: Visitor) -> None:
    house.approve(house.correct(3, email="z@example.org"))
    house.run()
    with house.runtime.db.read() as session:
        letter = session.scalars(select(DeadLetter.id)).one()
    page = ada.post("/console/abandoned/requeue", {"ids": [str(letter)], "reason": REASON}).text
    assert "0 of 1 retried" in page
    assert "its corrections are gone" in page


def test_a_correction_that_a_later_one_overtook_is_no_trouble(house: House, ada: Visitor) -> None:
    house.pause("crm")
    first, second = house.correct(3, name="Zenobia"), house.correct(3, name="Zoe")
    house.approve(first)
    house.approve(second)
    page = words(show(ada, house, first))
    assert "crm name Superseded" in page
    assert "a later request supersedes the correction" in page
    assert "by hand" not in page
    assert ada.refs("/console/abandoned") == []


def test_a_correction_of_somebody_who_was_erased_is_closed(house: House, ada: Visitor) -> None:
    request_id = house.correct(3, name="Zenobia")
    house.approve(house.ask(3))
    page = words(show(ada, house, request_id))
    assert status_of(house, request_id) is RequestStatus.CANCELLED
    assert "Nothing: the person was erased, so nothing is left to correct." in page
    assert ada.refs("/console/requests?status=cancelled") == [ref_of(house, request_id)]


def test_corrections_can_be_listed_by_kind(house: House, ada: Visitor) -> None:
    house.ask(1)
    request_id = house.correct(3, name="Zenobia")
    assert ada.refs("/console/requests?kind=rectification") == [ref_of(house, request_id)]


def test_a_letter_that_belongs_to_no_request_breaks_no_page(house: House, ada: Visitor) -> None:
    now = clock.now()
    letter = {
        "id": new_id(),
        "domain": DeadLetterDomain.MESSAGE,
        "failure_type": "TransientFailure",
        "error_code": "undeliverable",
        "status": DeadLetterStatus.PENDING,
        "retry_count": 0,
        "max_retries": 2,
        "context": {},
        "created_at": now,
        "updated_at": now,
        "recommended_action": "fix_and_requeue",
        "resolution": "",
    }
    with house.runtime.db.begin() as session:
        session.execute(insert(DeadLetter), letter)
    assert "Message" in words(ada.get("/console/abandoned").text)
    confirm = ada.post("/console/abandoned/confirm", {"only": str(letter["id"])})
    assert "Retry 1 failed step?" in confirm.text
    assert ada.get("/console/").status_code == 200


def test_the_plan_says_so_when_the_map_no_longer_allows_it(house: House, ada: Visitor) -> None:
    request_id = house.correct(3, name="Zenobia")
    with house.runtime.db.begin() as session:
        session.execute(update(customers).where(customers.c.id == 3).values(name="x"))
    plan = house.runtime.plan
    house.runtime._plan = replace(plan, data_map=replace(plan.data_map, rectify={}))
    assert "The corrections are invalid." in show(ada, house, request_id)
