"""Correct me: what may be sent, what is refused by name, and that no value is ever seen again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from sqlalchemy import select

from effaced.audit.tables import AuditEvent
from effaced.requests.tables import Request

Api = Any  # the class lives in conftest.py, which is not a module to import from
ALLOWED = "birthday, email, membership, name, phone, points, salutation"
SECRETS = ("Zenobia", "z.new@example.org", "+49 555 0199")
CORRECTIONS = {"name": "Zenobia", "email": "z.new@example.org", "phone": "+49 555 0199"}


# --- taken in ---


def test_a_rectification_is_taken_in_and_tells_the_names_of_what_it_corrects(api: Api) -> None:
    answer = api.post(api.rectification("4", **CORRECTIONS))
    body = answer.get_json()
    assert (answer.status_code, body["kind"], body["status"]) == (201, "rectification", "review")
    assert body["corrections"] == ["email", "name", "phone"]
    assert api.customer(4).name == "Nobody"


def test_without_approvals_the_values_are_corrected_before_the_answer(correcting_api: Api) -> None:
    sent = {**CORRECTIONS, "birthday": "1990-04-01", "points": 7, "membership": True, "salutation": "mx"}
    where = correcting_api.post(correcting_api.rectification("4", **sent)).headers["Location"]
    row, other = correcting_api.customer(4), correcting_api.customer(5)
    assert (row.name, row.email, row.phone) == SECRETS
    assert (row.born, row.points, row.member, row.salutation) == (date(1990, 4, 1), 7, True, "mx")
    assert (other.name, other.phone) == ("Nobody", None)
    assert correcting_api.get(where).get_json()["status"] == "running"


def test_a_column_is_named_by_table_and_column_and_known_by_its_category(api: Api) -> None:
    answer = api.post(api.rectification("4", **{"customers.phone": "+49 555 0199"}))
    assert answer.get_json()["corrections"] == ["phone"]


def test_null_empties_a_column_that_may_be_empty(correcting_api: Api) -> None:
    correcting_api.post(correcting_api.rectification("4", phone="1"))
    correcting_api.post(correcting_api.rectification("4", phone=None))
    assert correcting_api.customer(4).phone is None


def test_several_corrections_of_one_person_may_be_open(api: Api) -> None:
    answers = [api.post(api.rectification("4", name=name)) for name in ("Ada", "Eva")]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].get_json()["id"] != answers[1].get_json()["id"]


# --- refused, by name, and with nothing changed ---


@pytest.mark.parametrize(
    ("corrections", "wrong"),
    [
        (
            {"shoe_size": "44"},
            {"corrections.shoe_size": f"can't be corrected; the data map allows {ALLOWED}"},
        ),
        (
            {"customers.crm_ref": "c-9"},
            {"corrections.customers.crm_ref": f"can't be corrected; the data map allows {ALLOWED}"},
        ),
        ({"name": 44}, {"corrections.name": "must be a text"}),
        ({"name": ["Zenobia"]}, {"corrections.name": "must be a text, a number, true, false or null"}),
        ({"name": "Zenobia" * 3}, {"corrections.name": "must have at most 20 characters"}),
        ({"name": "Zeno\0bia"}, {"corrections.name": "holds characters that no text can have"}),
        ({"name": None}, {"corrections.name": "must not be null"}),
        ({"birthday": "1 April"}, {"corrections.birthday": "must be a date such as 1990-04-01"}),
        ({"points": "many"}, {"corrections.points": "must be a number"}),
        ({"points": 1.5}, {"corrections.points": None}),
        (
            {"points": 2**63},
            {"corrections.points": "must be a number of at most 64 bits; send a longer one as a text"},
        ),
        ({"membership": "yes"}, {"corrections.membership": "must be true or false"}),
        (
            {"name": "Ada", "customers.name": "Eva"},
            {"corrections.name": "is there twice, by its category and by its column"},
        ),
        (
            {"name": None, "phone": 3, "points": "many"},
            {
                "corrections.name": "must not be null",
                "corrections.phone": "must be a text",
                "corrections.points": "must be a number",
            },
        ),
    ],
    ids=lambda value: ",".join(value),
)
def test_what_can_not_be_corrected_is_refused_by_name(
    api: Api, corrections: dict[str, Any], wrong: dict[str, str | None]
) -> None:
    before = api.rows()
    status, slug, fields = api.problem(api.post(api.rectification("4", **corrections)))
    assert (status, slug) == (422, "refused")
    assert fields.keys() == wrong.keys()
    assert [fields[name] for name, said in wrong.items() if said] == [said for said in wrong.values() if said]
    assert api.rows() == before


def test_a_word_that_the_enum_does_not_have_is_refused_with_those_that_it_has(
    make_api: Callable[..., Api], migrated_postgres_url: str
) -> None:
    api = make_api(migrated_postgres_url)  # SQLite has no enums
    answer = api.post(api.rectification("4", salutation="Zenobia"))
    assert api.problem(answer)[2] == {"corrections.salutation": "must be one of ms, mr, mx"}
    assert "Zenobia" not in answer.text


def test_a_name_that_may_be_personal_is_not_repeated(api: Api) -> None:
    answer = api.post(api.rectification("4", **{"z.new@example.org": "x"}))
    assert list(api.problem(answer)[2]) == ["corrections.(unprintable)"]
    assert "z.new" not in answer.text


def test_a_name_that_stands_twice_in_the_text_is_refused(api: Api) -> None:
    answer = api.send(
        b'{"kind": "rectification", "subject": {"id": "4"}, "corrections": {"name": "Ada", "name": "Eva"}}'
    )
    assert api.problem(answer) == (422, "refused", {"name": "is there twice"})
    assert api.rows()["effaced_requests"] == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "rectification", "subject": {"id": "4"}}, "is missing"),
        ({"kind": "rectification", "subject": {"id": "4"}, "corrections": None}, "is missing"),
        ({"kind": "rectification", "subject": {"id": "4"}, "corrections": {}}, "must not be empty"),
        (
            {"kind": "rectification", "subject": {"id": "4"}, "corrections": {str(n): 1 for n in range(51)}},
            "must have at most 50 names",
        ),
        (
            {"kind": "rectification", "subject": {"id": "4"}, "corrections": []},
            "must be an object of names and values",
        ),
        (
            {"kind": "erasure", "subject": {"id": "4"}, "corrections": {"name": "Zenobia"}},
            "goes with a rectification only",
        ),
    ],
)
def test_corrections_go_with_a_rectification_and_only_there(api: Api, body: Any, said: str) -> None:
    before = api.rows()
    answer = api.post(body)
    assert api.problem(answer) == (422, "refused", {"corrections": said})
    assert "Zenobia" not in answer.text
    assert api.rows() == before


def test_an_unknown_person_is_refused_without_repeating_who(api: Api) -> None:
    answer = api.post(api.rectification("4711", name="Zenobia"))
    assert api.problem(answer)[2] == {"subject.id": "no such person in table customers"}
    # The id of the HTTP call is random, and may have any four digits.
    assert "4711" not in str(answer.get_json() | {"trace_id": ""})


def test_an_erased_person_has_nothing_left_to_correct(trusted_api: Api) -> None:
    """Their row is gone; where it stays, intake knows by the erasure itself."""
    trusted_api.post(trusted_api.erasure("4"))
    answer = trusted_api.post(trusted_api.rectification("4", name="Zenobia"))
    assert trusted_api.problem(answer)[2] == {"subject.id": "no such person in table customers"}
    assert trusted_api.rows()["effaced_requests"] == 1


def test_a_correction_that_waited_while_the_person_was_erased_is_closed(api: Api) -> None:
    where = api.post(api.rectification("4", name="Zenobia")).headers["Location"]
    trusted = api.new_key("trusted", approvals_needed=0)
    api.post(api.erasure("4"), token=trusted)
    told = api.whole(where)
    assert told["status"] == "cancelled"
    assert told["events"][-1]["type"] == "REQUEST_SUPERSEDED"


# --- no value is ever seen again ---


def test_no_value_is_in_any_answer_log_or_table(correcting_api: Api, logs: list[Any]) -> None:
    first = correcting_api.post(correcting_api.rectification("4", **CORRECTIONS), idempotency_key="a-1")
    again = correcting_api.post(correcting_api.rectification("4", **CORRECTIONS), idempotency_key="a-1")
    asyncio.run(correcting_api.runtime.runner().run_once())
    shown = correcting_api.get(f"{first.headers['Location']}?expand=entries&expand=events")
    assert shown.status_code == 200
    trail = correcting_api.get(f"{first.headers['Location']}/events")
    refused = correcting_api.post(correcting_api.rectification("4", name=list(SECRETS)))
    assert correcting_api.customer(4).name == "Zenobia", "the company's own table is the one place"
    stored = correcting_api.everything()
    texts = [first.text, again.text, shown.text, trail.text, refused.text, stored, str(logs)]
    assert [secret for secret in SECRETS for text in texts if secret in text] == []


def test_values_that_wait_for_approval_are_sealed(api: Api) -> None:
    api.post(api.rectification("4", **CORRECTIONS))
    stored = api.everything()
    assert [secret for secret in SECRETS if secret in stored] == []
    with api.runtime.db.read() as session:
        assert session.scalars(select(Request.corrections_sealed)).one() is not None


def test_the_same_correction_twice_has_one_effect_and_another_is_a_conflict(api: Api) -> None:
    first = api.post(api.rectification("4", name="Ada"), idempotency_key="a-1")
    again = api.post(api.rectification("4", name="Ada"), idempotency_key="a-1")
    other = api.post(api.rectification("4", name="Eva"), idempotency_key="a-1")
    assert (again.text, again.headers["Idempotent-Replay"]) == (first.text, "true")
    assert api.problem(other)[:2] == (409, "idempotency-key-reused")
    assert api.rows()["effaced_requests"] == 1


# --- asking how it stands ---


def test_it_tells_operation_and_fields_of_each_call(correcting_api: Api) -> None:
    where = correcting_api.post(correcting_api.rectification("4", name="Ada", phone=None)).headers["Location"]
    asyncio.run(correcting_api.runtime.runner().run_once())
    told = correcting_api.whole(where)
    (entry,) = told["entries"]
    assert (entry["resolver"], entry["operation"], entry["status"]) == ("archive", "rectify", "scheduled")
    assert entry["corrections"] == ["name", "phone"]
    assert [event["type"] for event in told["events"]] == [
        "REQUEST_RECEIVED",
        "LOCAL_RECTIFICATION_EXECUTED",
        "ATTESTATION_AWAITED",
    ]


def test_the_trail_names_the_fields_and_nothing_else_of_the_correction(correcting_api: Api) -> None:
    correcting_api.post(correcting_api.rectification("4", name="Ada"))
    with correcting_api.runtime.db.read() as session:
        event = session.scalars(
            select(AuditEvent).where(AuditEvent.type == "LOCAL_RECTIFICATION_EXECUTED")
        ).one()
    assert event.payload["fields"] == ["name"]
    assert event.payload["tables"] == [{"table": "customers", "columns": ["name"], "rows": 1}]
