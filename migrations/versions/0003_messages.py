"""messages, their deliveries, and every try

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
OLDEST_CODE = 3

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
MOMENT = sa.DateTime(timezone=True)
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def where(condition: str) -> dict[str, sa.TextClause]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "effaced_messages",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("fanned_out_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_messages")),
    )
    op.create_index(
        "ix_effaced_messages_waiting",
        "effaced_messages",
        ["created_at", "id"],
        **where("fanned_out_at IS NULL"),
    )
    op.create_index("ix_effaced_messages_created", "effaced_messages", ["created_at"])
    op.create_table(
        "effaced_deliveries",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("message_id", sa.Uuid(), nullable=False),
        sa.Column("target", sa.String(length=63), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("gate", MOMENT, nullable=False),
        sa.Column("aging_since", MOMENT, nullable=False),
        sa.Column("last_error", sa.String(length=255), nullable=True),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_deliveries")),
        sa.ForeignKeyConstraint(
            ["message_id"], ["effaced_messages.id"], name=op.f("fk_effaced_deliveries_message_id")
        ),
        sa.UniqueConstraint("message_id", "target", name=op.f("uq_effaced_deliveries_message_id_target")),
    )
    op.create_index(
        "ix_effaced_deliveries_due",
        "effaced_deliveries",
        ["target", "gate", "id"],
        **where("status = 'pending'"),
    )
    op.create_table(
        "effaced_delivery_attempts",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("delivered", sa.Boolean(), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("latency_ms", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_delivery_attempts")),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["effaced_deliveries.id"],
            name=op.f("fk_effaced_delivery_attempts_delivery_id"),
        ),
    )
    op.create_index(
        "ix_effaced_delivery_attempts_delivery", "effaced_delivery_attempts", ["delivery_id", "id"]
    )


def downgrade() -> None:
    for table in ("effaced_delivery_attempts", "effaced_deliveries", "effaced_messages"):
        op.drop_table(table)
