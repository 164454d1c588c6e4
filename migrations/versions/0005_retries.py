"""retries: policies changed at run time, more about each try, what an hour of them came to

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
OLDEST_CODE = 5

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
MOMENT = sa.DateTime(timezone=True)
COUNTS = ("attempts", "entries", "requests", "retries")


def upgrade() -> None:
    op.add_column("effaced_outbox", sa.Column("idle_since", MOMENT, nullable=True))
    for name in ("first", "trial"):
        op.add_column(
            "effaced_attempts", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())
        )
    op.add_column("effaced_attempts", sa.Column("delay_before_ms", sa.BigInteger(), nullable=True))
    op.add_column("effaced_attempts", sa.Column("retry_after_s", sa.Integer(), nullable=True))
    op.create_table(
        "effaced_policies",
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("scope", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("body", JSON, nullable=False),
        sa.Column("previous", JSON, nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("changed_by", sa.String(length=80), nullable=False),
        sa.Column("note_id", sa.Uuid(), nullable=True),
        sa.PrimaryKeyConstraint("kind", "scope", "key", name=op.f("pk_effaced_policies")),
    )
    op.create_table(
        "effaced_attempt_hours",
        sa.Column("hour", MOMENT, nullable=False),
        sa.Column("resolver", sa.String(length=255), nullable=False),
        sa.Column("computed_at", MOMENT, nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS),
        *(
            sa.Column(name, JSON, nullable=False)
            for name in ("outcomes", "success_by_attempt", "failure_by_reason")
        ),
        *(
            column
            for name in ("latency", "wait")
            for column in (
                sa.Column(f"{name}_count", sa.BigInteger(), nullable=False),
                sa.Column(f"{name}_ms_sum", sa.BigInteger(), nullable=False),
                sa.Column(f"{name}_buckets", JSON, nullable=False),
            )
        ),
        sa.PrimaryKeyConstraint("hour", "resolver", name=op.f("pk_effaced_attempt_hours")),
    )


def downgrade() -> None:
    for table in ("effaced_attempt_hours", "effaced_policies"):
        op.drop_table(table)
    with op.batch_alter_table("effaced_attempts") as batch:
        for name in ("first", "trial", "delay_before_ms", "retry_after_s"):
            batch.drop_column(name)
    op.drop_column("effaced_outbox", "idle_since")
