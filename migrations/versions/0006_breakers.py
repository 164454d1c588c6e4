"""breakers, their moves, and what a shared store did not take

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
OLDEST_CODE = 6

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
MOMENT = sa.DateTime(timezone=True)
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def where(condition: str) -> dict[str, sa.TextClause]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "effaced_breakers",
        sa.Column("service_name", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("failure_count", sa.Integer(), nullable=False),
        sa.Column("success_count", sa.Integer(), nullable=False),
        sa.Column("opened_at", MOMENT, nullable=True),
        sa.Column("last_failure_at", MOMENT, nullable=True),
        sa.Column("retry_at", MOMENT, nullable=True),
        sa.Column("reset_timeout_s", sa.Double(), nullable=True),
        sa.Column("slots", JSON, nullable=False),
        sa.Column("slots_given", sa.Integer(), nullable=False),
        sa.Column("recent_failures", JSON, nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("pinned", sa.String(length=32), nullable=True),
        sa.Column("controlled_by", sa.String(length=80), nullable=True),
        sa.Column("control_reason", sa.String(length=64), nullable=True),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("cooldown_until", MOMENT, nullable=True),
        sa.Column("cooldown_reason", sa.String(length=64), nullable=True),
        sa.Column("updated_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("service_name", name=op.f("pk_effaced_breakers")),
    )
    op.create_table(
        "effaced_breaker_transitions",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("service_name", sa.String(length=255), nullable=False),
        sa.Column("old", sa.String(length=32), nullable=False),
        sa.Column("new", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("reset_timeout_s", sa.Double(), nullable=True),
        sa.Column("retry_at", MOMENT, nullable=True),
        sa.Column("pinned_until", MOMENT, nullable=True),
        sa.Column("actor", sa.String(length=80), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_breaker_transitions")),
    )
    op.create_index(
        "ix_effaced_breaker_transitions_service",
        "effaced_breaker_transitions",
        ["service_name", "at", "id"],
    )
    op.create_index("ix_effaced_breaker_transitions_at", "effaced_breaker_transitions", ["at"])
    op.create_table(
        "effaced_breaker_shadow",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("service_name", sa.String(length=255), nullable=False),
        sa.Column("intended_state", sa.String(length=32), nullable=False),
        sa.Column("l1_state", sa.String(length=32), nullable=False),
        sa.Column("failed_at", MOMENT, nullable=False),
        sa.Column("error", sa.String(length=255), nullable=False),
        sa.Column("adapter", sa.String(length=32), nullable=False),
        sa.Column("operation", sa.String(length=32), nullable=False),
        sa.Column("synced_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_breaker_shadow")),
    )
    op.create_index(
        "ix_effaced_breaker_shadow_unsynced",
        "effaced_breaker_shadow",
        ["service_name", "id"],
        **where("synced_at IS NULL"),
    )


def downgrade() -> None:
    for table in ("effaced_breaker_shadow", "effaced_breaker_transitions", "effaced_breakers"):
        op.drop_table(table)
