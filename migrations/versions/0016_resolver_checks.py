"""the last check of each resolver's read-back

Revision ID: 0016
Revises: 0015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
OLDEST_CODE = 12


def upgrade() -> None:
    op.create_table(
        "effaced_resolver_checks",
        sa.Column("resolver", sa.String(length=255), nullable=False),
        sa.Column("proof", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("config_key_id", sa.String(length=16), nullable=False),
        sa.Column("config_hmac", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("resolver", name=op.f("pk_effaced_resolver_checks")),
    )


def downgrade() -> None:
    op.drop_table("effaced_resolver_checks")
