"""ends of retentions that are more than one transaction

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
OLDEST_CODE = 10


def upgrade() -> None:
    op.create_table(
        "effaced_retention_endings",
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("actor", sa.String(length=80), nullable=False),
        sa.Column("note_id", sa.Uuid(), nullable=True),
        sa.Column("note_hmac", sa.String(length=64), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("of", sa.Integer(), nullable=False),
        sa.Column("go_on_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_effaced_retention_endings")),
        sa.ForeignKeyConstraint(
            ["request_id"], ["effaced_requests.id"], name=op.f("fk_effaced_retention_endings_request_id")
        ),
    )
    op.create_index("ix_effaced_retention_endings_go_on_at", "effaced_retention_endings", ["go_on_at"])


def downgrade() -> None:
    op.drop_table("effaced_retention_endings")
