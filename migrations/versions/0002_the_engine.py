"""the engine: corrections, order between calls, pauses and shared rates

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
OLDEST_CODE = 2

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
MOMENT = sa.DateTime(timezone=True)
OPTIONAL = ("request_id", "subject_key_id", "subject_hmac")


def where(condition: str) -> dict[str, sa.TextClause]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    for table in ("effaced_outbox", "effaced_requests"):
        op.add_column(table, sa.Column("corrections_sealed", sa.LargeBinary(), nullable=True))
    op.add_column("effaced_requests", sa.Column("correction_fields", JSON, nullable=True))
    op.add_column("effaced_outbox", sa.Column("fields", JSON, nullable=True))
    op.add_column("effaced_outbox", sa.Column("waits_for", JSON, nullable=True))
    op.add_column(
        "effaced_outbox", sa.Column("unblocks", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    claim_indexes("status = 'pending' AND gate IS NULL AND waits_for IS NULL")
    op.create_index(
        "ix_effaced_outbox_corrections",
        "effaced_outbox",
        ["subject_hmac", "resolver"],
        **where("operation = 'rectify' AND status <> 'succeeded'"),
    )
    op.create_index("ix_effaced_requests_subject", "effaced_requests", ["subject_hmac"])
    with op.batch_alter_table("effaced_dead_letters") as batch:
        for name in OPTIONAL:
            batch.alter_column(name, nullable=True)
    op.create_table(
        "effaced_flow",
        sa.Column("resolver", sa.String(length=255), nullable=False),
        sa.Column("paused_at", MOMENT, nullable=True),
        sa.Column("paused_until", MOMENT, nullable=True),
        sa.Column("paused_by", sa.String(length=80), nullable=True),
        sa.Column("pause_code", sa.String(length=64), nullable=True),
        sa.Column("note_id", sa.Uuid(), nullable=True),
        sa.Column("booked_until", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("resolver", name=op.f("pk_effaced_flow")),
    )


def claim_indexes(fresh: str) -> None:
    op.drop_index("ix_effaced_outbox_fresh", "effaced_outbox")
    op.create_index(
        "ix_effaced_outbox_fresh", "effaced_outbox", ["resolver", "enqueued_at", "entry_id"], **where(fresh)
    )


def downgrade() -> None:
    op.drop_table("effaced_flow")
    # Letters that are about no request have no place in the older form.
    op.execute("DELETE FROM effaced_dead_letters WHERE request_id IS NULL")
    with op.batch_alter_table("effaced_dead_letters") as batch:
        for name in OPTIONAL:
            batch.alter_column(name, nullable=False)
    op.drop_index("ix_effaced_requests_subject", "effaced_requests")
    op.drop_index("ix_effaced_outbox_corrections", "effaced_outbox")
    claim_indexes("status = 'pending' AND gate IS NULL")
    for name in ("corrections_sealed", "correction_fields"):
        op.drop_column("effaced_requests", name)
    for name in ("corrections_sealed", "fields", "waits_for", "unblocks"):
        op.drop_column("effaced_outbox", name)
