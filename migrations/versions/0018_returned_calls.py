"""calls that returned but could not be written down; read-backs under way; the role of an attempt

Revision ID: 0018
Revises: 0017
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
OLDEST_CODE = 17


def upgrade() -> None:
    op.add_column("effaced_outbox", sa.Column("returned_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "effaced_outbox", sa.Column("verifying", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column("effaced_attempts", sa.Column("role", sa.String(length=32), nullable=True))


def downgrade() -> None:
    op.drop_column("effaced_attempts", "role")
    op.drop_column("effaced_outbox", "verifying")
    op.drop_column("effaced_outbox", "returned_at")
