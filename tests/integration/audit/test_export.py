"""The trail taken out: complete, safe to open, and itself told."""

from __future__ import annotations

import csv
import io
import json
from uuid import UUID

import pytest
from sqlalchemy import insert, select

from effaced.audit.append import append_one
from effaced.audit.events import RequestRepeated
from effaced.audit.export import export
from effaced.audit.read import AuditFilter
from effaced.audit.spool import Spool
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.db import Database
from effaced.core.errors import Refused
from effaced.model import ExportFormat

ONE, OTHER = UUID(int=1), UUID(int=2)


def text_of(spool: Spool) -> str:
    return b"".join(spool).decode()


@pytest.fixture
def trail(db: Database) -> Database:
    with db.begin() as session:
        for request_id in (ONE, OTHER, ONE):
            append_one(session, RequestRepeated(), request_id=request_id)
    return db


def test_json_lines_hold_every_event_in_order(trail: Database) -> None:
    lines = text_of(export(trail, AuditFilter(), ExportFormat.JSONL, actor="cli")).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 2, 3]


def test_csv_holds_the_same(trail: Database) -> None:
    rows = list(
        csv.DictReader(io.StringIO(text_of(export(trail, AuditFilter(), ExportFormat.CSV, actor="cli"))))
    )
    assert [(row["type"], row["request_id"]) for row in rows] == [
        ("REQUEST_REPEATED", str(each)) for each in (ONE, OTHER, ONE)
    ]


def test_a_filter_holds_for_the_export(trail: Database) -> None:
    lines = text_of(
        export(trail, AuditFilter(request_id=OTHER), ExportFormat.JSONL, actor="cli")
    ).splitlines()
    assert [json.loads(line)["request_id"] for line in lines] == [str(OTHER)]


def test_is_itself_an_event_with_its_actor(trail: Database) -> None:
    export(trail, AuditFilter(), ExportFormat.CSV, actor="officer:7").close()
    with trail.read() as session:
        event = session.scalars(select(AuditEvent).where(AuditEvent.type == "AUDIT_EXPORTED")).one()
    assert (event.actor, event.payload) == ("officer:7", {"format": "csv", "events_up_to": 3, "events": 3})


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_of_csv_is_a_formula(db: Database, start: str) -> None:
    with db.begin() as session:
        session.execute(
            insert(AuditEvent),
            {
                "at": clock.now(),
                "type": "REQUEST_REPEATED",
                "actor": f"{start}cmd|' /C calc'!A0",
                "payload": {},
            },
        )
    (row,) = csv.DictReader(io.StringIO(text_of(export(db, AuditFilter(), ExportFormat.CSV, actor="cli"))))
    assert row["actor"].startswith("'")


def test_more_than_a_batch_is_exported_without_gap(db: Database) -> None:
    with db.begin() as session:
        session.execute(
            insert(AuditEvent),
            [
                {"at": clock.now(), "type": "REQUEST_REPEATED", "actor": "system", "payload": {}}
                for _ in range(2_500)
            ],
        )
    lines = text_of(export(db, AuditFilter(), ExportFormat.JSONL, actor="cli")).splitlines()
    assert [json.loads(line)["id"] for line in lines] == list(range(1, 2_501))


def test_says_what_was_asked_for(trail: Database) -> None:
    export(trail, AuditFilter(actor="cli", since=clock.now()), ExportFormat.CSV, actor="cli").close()
    with trail.read() as session:
        event = session.scalars(select(AuditEvent).where(AuditEvent.type == "AUDIT_EXPORTED")).one()
    assert {"by_actor", "since"} <= set(event.payload)


def test_an_unknown_type_is_refused_and_leaves_no_event(trail: Database) -> None:
    with pytest.raises(Refused, match="no such type"):
        export(trail, AuditFilter(type="NONSENSE"), ExportFormat.CSV, actor="cli")
    with trail.read() as session:
        assert len(session.scalars(select(AuditEvent)).all()) == 3
