"""`effaced audit`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import BinaryIO
from uuid import UUID

import click

from effaced.audit.export import export
from effaced.audit.notes import forget_note
from effaced.audit.read import AuditFilter
from effaced.core.config import Settings
from effaced.core.db.schema_level import open_database
from effaced.model import ExportFormat


@click.command("export")
@click.option(
    "--format",
    "fmt",
    type=click.Choice([each.value for each in ExportFormat]),
    default="jsonl",
    show_default=True,
)
@click.option("--request", "request_id", type=click.UUID, help="Only events of this request.")
@click.option("--type", "event_type", help="Only events of this type, e.g. ERASURE_COMPLETED.")
@click.option("--since", type=click.DateTime(), help="Only events from this moment on (UTC).")
@click.option("--until", type=click.DateTime(), help="Only events before this moment (UTC).")
@click.option("--output", type=click.File("wb", lazy=True), default="-", show_default=True)
@click.pass_obj
def export_command(
    settings: Settings,
    fmt: str,
    request_id: UUID | None,
    event_type: str | None,
    since: datetime | None,
    until: datetime | None,
    output: BinaryIO,
) -> None:
    """Export the trail. The export itself becomes an event of the trail."""
    database = open_database(settings.database_url)
    chosen = AuditFilter(
        request_id=request_id,
        type=event_type,
        since=since.replace(tzinfo=UTC) if since else None,
        until=until.replace(tzinfo=UTC) if until else None,
    )
    for piece in export(database, chosen, ExportFormat(fmt), actor="cli", spool_dir=settings.spool_dir):
        output.write(piece)


@click.command("forget-note")
@click.argument("note_id", type=click.UUID)
@click.pass_obj
def forget_command(settings: Settings, note_id: UUID) -> None:
    """Remove what somebody typed as a reason, for good. NOTE_ID is the `note_id` of the event it belongs to.

    The trail stays as it is: it has only the note's id and keyed hash.
    """
    database = open_database(settings.database_url)
    try:
        with database.begin() as session:
            forget_note(session, note_id, actor="cli")
    finally:
        database.dispose()
    click.echo("Forgotten. The trail says so.")
