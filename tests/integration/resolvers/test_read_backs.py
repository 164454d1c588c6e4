"""What is kept of the last check of a read-back, and when it no longer counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.model import CheckReason, ReadBackProof
from effaced.resolvers.check import Checked
from effaced.resolvers.load import load_registry
from effaced.resolvers.manual import ManualConfig, ManualResolver
from effaced.resolvers.read_backs import ReadBack, read_backs, record_check
from effaced.resolvers.registry import Registered, ResolverRegistry

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
KEY = new_key("k1")
KEYRING = Keyring.parse(KEY)
FILE = """
version: 1
resolvers:
  crm:
    kind: http
    ref: contact
    base_url: ${CRM}
    auth: {bearer: "${TOKEN}"}
    erase: {method: DELETE, path: "/contacts/{ref}"}
    verify: {path: "/contacts/{ref}", absent: [404], present: [200]}
    timeout: 60
"""
ENVIRON = {"CRM": "https://crm.example", "TOKEN": "t0ken-one"}


@pytest.fixture
def crm(tmp_path: Path) -> Registered:
    return load(tmp_path)


def load(folder: Path, replaced: tuple[str, str] = ("", ""), **environ: str) -> Registered:
    path = folder / "resolvers.yaml"
    path.write_text(FILE.replace(*replaced) if replaced[0] else FILE)
    return load_registry(path, ENVIRON | environ).get("crm")


def record(
    db: Database, crm: Registered, reason: CheckReason = CheckReason.CANARY_SEEN, *, erased: bool = False
) -> None:
    with db.begin() as session:
        record_check(session, KEYRING, crm, Checked("crm", reason, "", erased), actor="cli")


def known(db: Database, crm: Registered, keyring: Keyring = KEYRING) -> ReadBack | None:
    with db.read() as session:
        return read_backs(session, ResolverRegistry((crm,)), keyring).get("crm")


def told(db: Database) -> list[tuple[str, str]]:
    with db.read() as session:
        rows = session.scalars(select(AuditEvent).where(AuditEvent.type == "RESOLVER_CHECKED"))
        return [(row.payload["proof"], row.payload["reason"]) for row in rows]


def test_a_system_that_was_never_checked_is_unproven(db: Database, crm: Registered) -> None:
    assert known(db, crm) == ReadBack(ReadBackProof.UNPROVEN, CheckReason.NEVER_CHECKED)


def test_a_system_without_a_read_back_has_nothing_to_prove(db: Database) -> None:
    assert known(db, Registered("crm", "contact", ManualResolver(ManualConfig()))) is None


@pytest.mark.parametrize(
    "reason", [CheckReason.CANARY_SEEN, CheckReason.NO_CANARY, CheckReason.CANARY_ABSENT]
)
def test_the_last_result_is_known_with_its_moment(db: Database, crm: Registered, reason: CheckReason) -> None:
    with clock.pretend(NOON) as moving:
        record(db, crm, CheckReason.STILL_PRESENT)
        moving.advance(timedelta(hours=1))
        record(db, crm, reason)
    assert known(db, crm) == ReadBack(Checked("crm", reason, "").proof, reason, NOON + timedelta(hours=1))


@pytest.mark.parametrize(
    ("replaced", "environ"),
    [
        (("present: [200]", "present: [200, 201]"), {}),
        (("ref: contact", "ref: person"), {}),
        (("DELETE", "POST"), {}),
        (("", ""), {"CRM": "https://other.example"}),
        (("", ""), {"TOKEN": "of-another-account"}),
    ],
)
def test_a_changed_configuration_is_unproven_again(
    db: Database, crm: Registered, tmp_path: Path, replaced: tuple[str, str], environ: dict[str, str]
) -> None:
    record(db, crm)
    found = known(db, load(tmp_path, replaced, **environ))
    assert found is not None
    assert (found.proof, found.reason) == (ReadBackProof.UNPROVEN, CheckReason.CONFIGURATION_CHANGED)


@pytest.mark.parametrize("replaced", [("timeout: 60", "timeout: 61"), ("timeout: 60", "canary: con_1")])
def test_limits_and_the_canary_itself_change_nothing(
    db: Database, crm: Registered, tmp_path: Path, replaced: tuple[str, str]
) -> None:
    record(db, crm)
    found = known(db, load(tmp_path, replaced))
    assert found is not None
    assert found.proven


def test_another_class_under_the_same_name_is_unproven(db: Database, crm: Registered) -> None:
    record(db, crm)

    class Other:
        async def erase_subject(self, ref: object, *, key: object) -> None: ...
        async def verify_absent(self, ref: object, *, key: object) -> bool:
            return True

    found = known(db, replace(crm, resolver=Other()))  # type: ignore[arg-type]
    assert found is not None
    assert not found.proven


def test_a_new_key_changes_nothing_while_the_old_one_is_there(db: Database, crm: Registered) -> None:
    record(db, crm)
    found = known(db, crm, Keyring.parse(f"{new_key('k2')},{KEY}"))
    assert found is not None
    assert found.proven


def test_the_trail_is_told_when_the_result_changes_and_not_at_every_check(
    db: Database, crm: Registered
) -> None:
    for reason in (CheckReason.NO_CANARY, CheckReason.CANARY_SEEN, CheckReason.CANARY_SEEN):
        record(db, crm, reason)
    assert told(db) == [("unproven", "no_canary"), ("proven", "canary_seen")]


def test_the_trail_is_told_each_time_the_canary_was_erased(db: Database, crm: Registered) -> None:
    record(db, crm, CheckReason.CANARY_ERASED, erased=True)
    record(db, crm, CheckReason.CANARY_ERASED, erased=True)
    assert told(db) == [("proven", "canary_erased")] * 2


def test_the_trail_is_told_again_after_a_change_of_the_configuration(
    db: Database, crm: Registered, tmp_path: Path
) -> None:
    record(db, crm)
    record(db, load(tmp_path, ("DELETE", "POST")))
    assert told(db) == [("proven", "canary_seen")] * 2
