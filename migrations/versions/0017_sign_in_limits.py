"""limits of sign-in per address, account and caller; refusals that the trail sums up

Revision ID: 0017
Revises: 0016
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
OLDEST_CODE = 17


def upgrade() -> None:
    op.create_table(
        "effaced_sign_in_counters",
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("account", sa.String(length=64), nullable=True),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "key", name=op.f("pk_effaced_sign_in_counters")),
    )
    op.create_table(
        "effaced_sign_in_refusals",
        sa.Column("account", sa.String(length=36), nullable=False),
        sa.Column("officer_id", sa.Uuid(), nullable=True),
        sa.Column("why", sa.String(length=32), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("reported", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("account", name=op.f("pk_effaced_sign_in_refusals")),
    )
    op.drop_column("effaced_officers", "locked_until")
    op.drop_column("effaced_officers", "failed_sign_ins")


def downgrade() -> None:
    failed = sa.Column("failed_sign_ins", sa.Integer(), nullable=False, server_default="0")
    op.add_column("effaced_officers", failed)
    op.add_column("effaced_officers", sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True))
    op.drop_table("effaced_sign_in_refusals")
    op.drop_table("effaced_sign_in_counters")
