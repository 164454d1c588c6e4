"""which code each migration tolerates

Revision ID: 0014
Revises: 0012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0012"
OLDEST_CODE = 12


def upgrade() -> None:
    # Its rows are written by env.py after every migration, from OLDEST_CODE of each applied one.
    op.create_table(
        "effaced_schema_levels",
        sa.Column("revision", sa.String(length=32), nullable=False),
        sa.Column("oldest_code", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("revision", name=op.f("pk_effaced_schema_levels")),
    )


def downgrade() -> None:
    op.drop_table("effaced_schema_levels")
