"""What people type can be forgotten; the trail stays whole."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from saga_cast import KEYRING
from sqlalchemy import select

from effaced.audit.append import append_one
from effaced.audit.events import ReferenceRevealed
from effaced.audit.notes import NoteRef, forget_note, note_fields, read_notes, write_note
from effaced.audit.tables import AuditEvent
from effaced.cli.groups import audit
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import NotFound, Refused
from effaced.model import new_id


def typed(db: Database) -> NoteRef:
    with db.begin() as session:
        note = write_note(session, KEYRING, "Anna Meier called us.", author="cli")
        append_one(session, ReferenceRevealed(resolver="crm", **note_fields(note)), actor="cli")
    return note


def trail(db: Database) -> list[tuple[str, str]]:
    with db.read() as session:
        events = session.scalars(select(AuditEvent).order_by(AuditEvent.id))
        return [(event.type, event.payload["note_id"]) for event in events]


def test_a_forgotten_note_is_gone_and_the_trail_says_so(db: Database) -> None:
    note = typed(db)
    with db.begin() as session:
        forget_note(session, note.note_id, actor="cli")
    with db.read() as session:
        assert read_notes(session, KEYRING, [note.note_id]) == {}
    name = str(note.note_id)
    assert trail(db) == [("REFERENCE_REVEALED", name), ("NOTE_FORGOTTEN", name)]


@pytest.mark.parametrize("twice", [True, False])
def test_a_note_that_is_not_there_is_not_found(db: Database, twice: bool) -> None:
    note_id = typed(db).note_id if twice else new_id()
    if twice:
        with db.begin() as session:
            forget_note(session, note_id, actor="cli")
    with pytest.raises(NotFound), db.begin() as session:
        forget_note(session, note_id, actor="cli")


def test_the_command_forgets(db: Database, migrated_url: str) -> None:
    note = typed(db)
    settings = Settings(database_url=migrated_url, keys=new_key())  # type: ignore[arg-type]
    result = CliRunner().invoke(audit, ["forget-note", str(note.note_id)], obj=settings)
    assert (result.exit_code, result.output) == (0, "Forgotten. The trail says so.\n")
    assert trail(db)[-1][0] == "NOTE_FORGOTTEN"


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\u200b \u2060\ufeff", "\x00"], ids=ascii)
def test_a_note_that_nobody_could_see_is_missing(db: Database, text: str) -> None:
    with db.begin() as session, pytest.raises(Refused, match="reason is missing"):
        write_note(session, KEYRING, text, author="cli")


def test_a_note_that_is_no_valid_unicode_is_refused_in_a_sentence(db: Database) -> None:
    with db.begin() as session, pytest.raises(Refused, match="not valid Unicode"):
        write_note(session, KEYRING, "by telephone \udcff", author="cli")
