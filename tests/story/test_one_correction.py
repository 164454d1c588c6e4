"""One rectification from POST to completed, every process real."""

from __future__ import annotations

from pathlib import Path

from company_house import company
from sqlalchemy import select
from waiting import eventually

from effaced.core.db import Base
from effaced.demo.tables import customers

NAME, PHONE = "Zenobia Quist", "+49 555 010 999"


def test_from_post_to_completed(migrated_url: str, redis_url: str, tmp_path: Path) -> None:
    with company(migrated_url, redis_url, tmp_path) as shop:
        shop.start_web()
        shop.start("worker")
        shop.start("scheduler")
        with shop.db.read() as session:
            known = select(customers).where(
                customers.c.crm_ref.is_not(None), customers.c.archive_box.is_(None)
            )
            before = session.execute(known.order_by(customers.c.id).limit(1)).one()

        answer = shop.correct(before.id, name=NAME, phone=PHONE)
        assert (answer.status_code, answer.json()["corrections"]) == (201, ["name", "phone"])
        request_id = answer.json()["id"]
        shop.eventually(
            lambda: shop.get(request_id)["status"] == "completed", "the correction to be completed"
        )

        told = shop.get(request_id)
        assert {entry["resolver"]: (entry["operation"], entry["outcome"]) for entry in told["entries"]} == {
            "payment": ("rectify", "rectified"),
            "crm": ("rectify", "rectified"),
        }
        assert {entry["resolver"]: entry["corrections"] for entry in told["entries"]} == {
            "payment": ["name"],
            "crm": ["name", "phone"],
        }
        with shop.db.read() as session:
            after = session.execute(select(customers).where(customers.c.id == before.id)).one()
            stored = repr([session.execute(select(table)).all() for table in Base.metadata.sorted_tables])
        assert (after.name, after.phone, after.email) == (NAME, PHONE, before.email)
        assert shop.vendors.records("payment")[before.payment_ref]["name"] == NAME
        contact = shop.vendors.records("crm")[before.crm_ref]
        assert (contact["name"], contact["contact"]) == (NAME, {"phone": PHONE})
        assert [event["type"] for event in told["events"]][-1] == "RECTIFICATION_COMPLETED"
        logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
        assert [secret for secret in (NAME, PHONE) if secret in str(told) + stored + logs] == []


def test_a_system_that_can_not_correct_says_so_loudly(
    migrated_sqlite_url: str, redis_url: str, tmp_path: Path
) -> None:
    with company(migrated_sqlite_url, redis_url, tmp_path) as shop:
        shop.start_web()
        shop.start("worker")
        request_id = shop.correct(shop.people[0], email="zenobia@letters.example").json()["id"]
        eventually(shop.letters, "a dead letter for the mailing list")
        entries = {entry["resolver"]: entry["status"] for entry in shop.get(request_id)["entries"]}
        assert entries["mailing"] == "abandoned"
        assert "files" not in entries, "they hold nothing of it"
