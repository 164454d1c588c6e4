"""requests: which kind of people, and how far a person with very many rows has been worked off

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"
OLDEST_CODE = 9

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.add_column("effaced_requests", sa.Column("subject_type", sa.String(length=64), nullable=True))
    op.add_column("effaced_requests", sa.Column("worked_off", JSON, nullable=True))


def downgrade() -> None:
    op.drop_column("effaced_requests", "worked_off")
    op.drop_column("effaced_requests", "subject_type")
