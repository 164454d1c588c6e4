"""dead letters that people work through: assignment, marks, archive, summaries, redrives; scopes of API keys

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"
OLDEST_CODE = 7

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
MOMENT = sa.DateTime(timezone=True)
LETTERS = "effaced_dead_letters"


def where(condition: str) -> dict[str, sa.TextClause]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def columns() -> list[sa.Column[object]]:
    return [
        sa.Column("acquired", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("next_action_hint", sa.String(length=64), nullable=False, server_default=""),
        sa.Column("metadata", JSON, nullable=True),
        sa.Column("assigned_to", sa.Uuid(), nullable=True),
        sa.Column("assigned_at", MOMENT, nullable=True),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("resolved_by", sa.String(length=80), nullable=True),
        sa.Column("resolution_note_id", sa.Uuid(), nullable=True),
        sa.Column("archived_at", MOMENT, nullable=True),
    ]


def upgrade() -> None:
    for column in columns():
        op.add_column(LETTERS, column)
    # What was taken before counts: the number of a taking only grows.
    op.execute("UPDATE effaced_dead_letters SET acquired = retry_count")
    op.create_index("ix_effaced_dead_letters_created", LETTERS, ["created_at", "id"])
    op.create_index(
        "ix_effaced_dead_letters_archived", LETTERS, ["archived_at", "id"], **where("status = 'archived'")
    )
    op.add_column("effaced_notes", sa.Column("dead_letter_id", sa.Uuid(), nullable=True))
    op.create_index("ix_effaced_notes_dead_letter", "effaced_notes", ["dead_letter_id", "at"])
    op.add_column("effaced_api_keys", sa.Column("scopes", JSON, nullable=True))
    op.create_table(
        "effaced_dead_letter_summaries",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("domain", sa.String(length=32), nullable=False),
        sa.Column("failure_type", sa.String(length=255), nullable=False),
        sa.Column("error_code", sa.String(length=64), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
        sa.Column("last_seen", MOMENT, nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("compressed_at", MOMENT, nullable=False),
        sa.Column("stale_at", MOMENT, nullable=True),
        sa.Column("archived_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_dead_letter_summaries")),
    )
    op.create_index(
        "uq_effaced_dead_letter_summaries_active",
        "effaced_dead_letter_summaries",
        ["domain", "failure_type", "error_code"],
        unique=True,
        **where("status = 'active'"),
    )
    op.create_table(
        "effaced_redrives",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("filter", JSON, nullable=False),
        sa.Column("force", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("per_second", sa.Float(), nullable=True),
        sa.Column("by", sa.String(length=80), nullable=False),
        sa.Column("note_id", sa.Uuid(), nullable=False),
        sa.Column("note_hmac", sa.String(length=64), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("requeued", sa.Integer(), nullable=False),
        sa.Column("next_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("ended_by", sa.String(length=80), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_redrives")),
    )
    op.create_index("ix_effaced_redrives_created", "effaced_redrives", ["created_at", "id"])
    op.create_index("ix_effaced_redrives_running", "effaced_redrives", ["id"], **where("status = 'running'"))
    op.create_table(
        "effaced_redrive_rows",
        sa.Column("redrive_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("dead_letter_id", sa.Uuid(), nullable=False),
        sa.Column("requeued", sa.Boolean(), nullable=True),
        sa.Column("why", sa.String(length=32), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("redrive_id", "position", name=op.f("pk_effaced_redrive_rows")),
        sa.ForeignKeyConstraint(
            ["redrive_id"], ["effaced_redrives.id"], name=op.f("fk_effaced_redrive_rows_redrive_id")
        ),
    )


def downgrade() -> None:
    for table in ("effaced_redrive_rows", "effaced_redrives", "effaced_dead_letter_summaries"):
        op.drop_table(table)
    op.drop_column("effaced_api_keys", "scopes")
    op.drop_index("ix_effaced_notes_dead_letter", "effaced_notes")
    op.drop_column("effaced_notes", "dead_letter_id")
    op.drop_index("ix_effaced_dead_letters_archived", LETTERS)
    op.drop_index("ix_effaced_dead_letters_created", LETTERS)
    for column in columns():
        op.drop_column(LETTERS, column.name)
