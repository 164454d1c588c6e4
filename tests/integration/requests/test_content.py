"""What executing a request says about texts that were scrubbed and cells that were hashed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from requests_cast import MAP, Office
from retention_cast import LINE_DUE, Shop
from retention_cast import MAP as SHOP
from sqlalchemy import select, text

from effaced.audit.tables import AuditEvent
from effaced.core.db import Database
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.requests.execute import Executor

NOTES = """
  notes:
    link: {to: people, on: {person: id}}
    columns: {person: {anonymise: null}, body: {scrub: all}, visitor: {anonymise: keyed_hash}}
rectify:"""


@pytest.fixture(params=[10_000, 2], ids=["at once", "in batches"])
def executor(office: Office, tmp_path: Path, request: pytest.FixtureRequest) -> Executor:
    with office.db.begin() as session:
        session.execute(text("CREATE TABLE notes (person integer, body text, visitor text)"))
        for number in range(5):
            body = "anna@people.example called" if number % 2 else "somebody called"
            session.execute(text("INSERT INTO notes VALUES (1, :body, 'v-1')"), {"body": body})
    path = tmp_path / "notes.yaml"
    path.write_text(MAP.replace("\nrectify:", NOTES))
    with office.db.read() as session:
        plan = plan_erasure(session.connection(), load_map(path), office.keyring)
    return Executor(office.db, office.keyring, plan, office.registry, batch_rows=request.param)


def test_texts_are_scrubbed_and_the_trail_calls_a_hash_no_anonymisation(
    office: Office, executor: Executor
) -> None:
    request = office.receive(approvals=0).request
    executor.execute_now(request.id)
    executor.execute_due()
    with office.db.read() as session:
        rows = set(session.execute(text("SELECT person, body FROM notes")).all())
        hashes = set(session.scalars(text("SELECT visitor FROM notes")))
        executed = select(AuditEvent.payload).where(AuditEvent.type == "LOCAL_ERASURE_EXECUTED")
        payload = session.scalars(executed).one()
    assert rows == {(None, "[erased] called"), (None, "somebody called")}
    assert len(hashes) == 1
    assert all(each.startswith("hashed-k1-") for each in hashes)
    tables = {each["table"]: (each["action"], each["rows"]) for each in payload["tables"]}
    assert tables == {"people": ("deleted", 1), "notes": ("pseudonymised", 5)}
    assert [each["column"] for each in payload["scrubbed"]] == ["body"]


def test_a_retention_may_end_with_a_hash_or_in_a_document(db: Database, tmp_path: Path) -> None:
    shop = Shop(db, tmp_path)
    shop.run("ALTER TABLE lines ADD COLUMN doc text", """UPDATE lines SET doc = '{"size": 7, "hat": 1}'""")
    kept = "basis: warranty, until: sold_on + 2 years"
    columns = f"""
          id: not_personal
          invoice_id: not_personal
          text: {{retain: {{{kept}, then: {{anonymise: keyed_hash}}}}}}
          doc: {{retain: {{{kept}, then: {{json: {{$.size: delete}}}}}}}}
          sold_on: not_personal
    """
    invoices = SHOP.replace(", until: issued_on + 10 years", "")
    head, _, _ = invoices.partition("      id: not_personal\n      invoice_id")
    shop.use(head + "\n".join(line[4:] for line in columns.splitlines()[1:]))
    shop.erase()
    assert shop.rows("SELECT text FROM lines") == [("hat",)]
    shop.end(LINE_DUE)
    [(text_, doc)] = shop.rows("SELECT text, doc FROM lines")
    assert text_.startswith("hashed-k1-")
    assert json.loads(doc) == {"hat": 1}
    [event] = shop.events("RETENTION_ENDED")
    assert (event.payload["table"], event.payload["action"]) == ("lines", "pseudonymised")
    assert shop.end(LINE_DUE) == []
