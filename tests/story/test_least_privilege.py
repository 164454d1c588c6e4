"""Everything effaced does, done under the roles that `effaced database roles` makes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from company_house import company
from roles_cast import Cast, cast
from sqlalchemy import func, select, text

from effaced import demo
from effaced.app import create_app
from effaced.audit.exports.create import create_export
from effaced.audit.exports.read import ExportReader, list_exports, read_file
from effaced.audit.read import AuditFilter
from effaced.audit.tables import AuditExport, AuditExportChunk
from effaced.console.guard import SIGNED_IN_AT
from effaced.core import clock
from effaced.core.errors import EffacedError
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, ExportFormat, OutboxStatus
from effaced.outbox.tables import OutboxRow
from effaced.requests.tables import Request, RetentionEnding
from effaced.retries.metrics import RetryMetrics
from effaced.retries.tables import Attempt
from effaced.runtime import Runtime
from effaced.triage.attest import attest
from effaced.triage.retry import redrive
from tests.browser.seed import OLD, House, fill, open_house

DEMO_MAP = Path(demo.__file__).parent / "datamap.yaml"


@pytest.fixture
def roles(fresh_postgres_url: str, tmp_path: Path) -> Iterator[Cast]:
    with cast(fresh_postgres_url, tmp_path) as made:
        made.make_roles()
        made.migrate()
        yield made


@pytest.fixture
def house(roles: Cast, tmp_path: Path) -> Iterator[House]:
    """The company's tables are the administrator's; effaced runs on them as its run role."""
    opened = open_house(roles.admin_url, tmp_path, people=60, zone="UTC")
    opened.runtime.db.dispose()
    roles.make_roles(opened.runtime.settings.datamap)
    opened.runtime = runtime_as(roles, "run", opened)
    opened.runtime.require_ready()
    yield opened
    opened.runtime.db.dispose()


def runtime_as(roles: Cast, kind: str, house: House) -> Runtime:
    settings = house.runtime.settings.model_copy(
        update={"database_url": roles.url(kind), "retention_erase": "on_schedule"}
    )
    made = Runtime(settings)
    made.__dict__["registry"] = house.runtime.registry
    return made


def count(house: House, what: type, *conditions: object) -> int:
    with house.runtime.db.read() as session:
        return session.scalar(select(func.count()).select_from(what).where(*conditions)) or 0  # type: ignore[arg-type]


def test_a_drain_with_vendors_and_read_backs_ends_well(roles: Cast, redis_url: str, tmp_path: Path) -> None:
    with company(roles.admin_url, redis_url, tmp_path) as shop:
        roles.make_roles(DEMO_MAP)
        shop.environ["EFFACED_DATABASE_URL"] = roles.url("run")
        shop.start_web()
        request_id = shop.post(shop.people[0]).json()["id"]
        assert shop.start("drain").wait(60) == 0, shop.log("drain")
        told = shop.get(request_id)
        assert told["status"] == "completed"
        assert {entry["verification"] for entry in told["entries"]} == {"confirmed"}


def test_requests_of_every_state_triage_retention_and_tidying(house: House) -> None:
    now = clock.now()
    fill(house, now)
    runtime = house.runtime
    with runtime.db.read() as session:
        letters = list(
            session.scalars(select(DeadLetter.id).where(DeadLetter.domain == DeadLetterDomain.EXTERNAL_CALL))
        )
        abandoned = session.scalars(
            select(OutboxRow.entry_id).where(OutboxRow.status == OutboxStatus.ABANDONED)
        ).first()
    assert letters
    assert abandoned
    with runtime.db.begin() as session:
        attest(session, runtime.keyring, abandoned, actor="cli", reason="done by telephone")
    with runtime.db.begin() as session:
        redrive(session, runtime.keyring, letters, actor="cli", reason="mended", force=True)
    house.script.answers.clear()
    runtime.advance_redrives()
    house.run()

    old = text("SELECT count(*) FROM invoices WHERE customer_id = ANY (:old)")
    with runtime.db.read() as session:
        assert session.scalar(old, {"old": list(OLD)}) == 2
    runtime.end_retentions()
    with runtime.db.read() as session:
        assert session.scalar(old, {"old": list(OLD)}) == 0
    assert count(house, RetentionEnding) == 0

    attempts = count(house, Attempt)
    with clock.pretend(now + timedelta(days=400)):
        RetryMetrics(runtime.db).aggregate_hourly()
        runtime.tidy()
    assert count(house, Attempt) < attempts


def test_console_pages_can_be_read_with_the_read_role(house: House, roles: Cast) -> None:
    fill(house, clock.now())
    reader = runtime_as(roles, "read", house)
    app = create_app(reader)
    client = app.test_client()
    with client.session_transaction() as session:
        session.permanent = True
        session["_user_id"] = f"{house.cleo.id}:{house.cleo.session_epoch}"
        session[SIGNED_IN_AT] = int(clock.now().timestamp())
    with house.runtime.db.read() as session:
        ref = session.scalars(select(Request.ref)).first()
    pages = [
        rule.rule.replace("<ref>", str(ref))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/console/")
        and "GET" in (rule.methods or ())
        and "<" not in rule.rule.replace("<ref>", "")
    ]
    answers = {page: client.get(page).status_code for page in pages}
    reader.db.dispose()
    # What has come due is counted in the company's own tables, which are not for this role.
    assert answers.pop("/console/retentions") == 503
    assert answers.pop("/console/sign-in") == 303  # signed in already
    assert {page: status for page, status in answers.items() if status != 200} == {}


def test_the_read_role_can_list_and_write_nothing(house: House, roles: Cast) -> None:
    reader = runtime_as(roles, "read", house)
    with pytest.raises(EffacedError, match="lacks rights"):
        reader.require_ready()
    reader.db.dispose()
    listed = roles.effaced("deadletter", "list", url=roles.url("read"))
    assert listed.returncode == 0, listed.stderr
    # An export is an event of the trail, so who only reads can't make one.
    exported = roles.effaced("audit", "export", url=roles.url("read"))
    assert "permission denied for table effaced_audit_events" in exported.stderr


def test_exports_over_the_api_are_made_fetched_and_tidied_up_by_the_run_role(
    house: House, roles: Cast
) -> None:
    runtime = house.runtime
    with runtime.db.begin() as session:
        asked = create_export(
            session, AuditFilter(), ExportFormat.JSONL, api_key_id=house.shop.id, own_request_only=False
        )
    assert runtime.export_maker().run() == 1
    with runtime.db.read() as session:
        made = session.get_one(AuditExport, asked.id)
    assert b"".join(read_file(runtime.db, runtime.keyring, made)).count(b"\n") == made.events
    reader = runtime_as(roles, "read", house)
    listed = list_exports_of(reader, house.shop.id)
    reader.db.dispose()
    assert listed == [asked.id]
    with clock.pretend(clock.now() + timedelta(days=31)):
        runtime.tidy()
    assert (count(house, AuditExportChunk), count(house, AuditExport)) == (0, 0)


def list_exports_of(runtime: Runtime, api_key_id: UUID) -> list[UUID]:
    with runtime.db.read() as session:
        return [each.id for each in list_exports(session, ExportReader(api_key_id, whole_trail=True)).items]
