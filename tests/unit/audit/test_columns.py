"""The columns of an audit event stand in its table: what is written, listed and exported follows."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import create_engine, event, select
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import DuplicateCompleted
from effaced.audit.export import COLUMNS
from effaced.audit.read import AuditFilter, AuditLine, select_events
from effaced.audit.tables import AuditEvent

TABLE = AuditEvent.__table__.columns.keys()


def test_an_export_has_every_column_of_the_table() -> None:
    assert list(COLUMNS) == TABLE


def test_a_list_reads_what_a_line_shows() -> None:
    read = [column["name"] for column in select_events(AuditFilter()).column_descriptions]
    assert read == [each.name for each in fields(AuditLine)]
    assert set(read) <= set(TABLE)


def test_an_append_gives_every_column_a_value() -> None:
    engine = create_engine("sqlite://")
    AuditEvent.metadata.create_all(engine, [AuditEvent.__table__])  # type: ignore[list-item]
    statements: list[str] = []
    with Session(engine) as session:
        event.listen(engine, "before_cursor_execute", lambda *about: statements.append(about[2]))
        append_one(session, DuplicateCompleted())
        assert session.scalar(select(AuditEvent.type)) == DuplicateCompleted.type
    (insert,) = [each for each in statements if each.startswith("INSERT")]
    assert all(name in insert for name in TABLE if name != "id")
