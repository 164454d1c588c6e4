"""cooldowns keep their length when the clock is set back; drift history outlives processes

Revision ID: 0019
Revises: 0018
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
OLDEST_CODE = 17


def upgrade() -> None:
    cooldown_since = sa.Column("cooldown_since", sa.DateTime(timezone=True), nullable=True)
    op.add_column("effaced_breakers", cooldown_since)
    op.create_table(
        "effaced_breaker_drift",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("service_name", sa.String(length=255), nullable=False),
        sa.Column("l1_state", sa.String(length=32), nullable=False),
        sa.Column("l2_state", sa.String(length=32), nullable=False),
        sa.Column("l1_updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("l2_updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("winner", sa.String(length=8), nullable=False),
        sa.Column("result", sa.String(length=16), nullable=False),
        sa.Column("reconciled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("jitter_seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_breaker_drift")),
    )
    op.create_index("ix_effaced_breaker_drift_at", "effaced_breaker_drift", ["reconciled_at"])


def downgrade() -> None:
    op.drop_index("ix_effaced_breaker_drift_at", table_name="effaced_breaker_drift")
    op.drop_table("effaced_breaker_drift")
    op.drop_column("effaced_breakers", "cooldown_since")
