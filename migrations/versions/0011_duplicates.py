"""requests: every asking has a row; duplicates wait for the open erasure of the same person

Revision ID: 0011
Revises: 0010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
OLDEST_CODE = 11

OPEN = sa.text("kind = 'erasure' AND closed_at IS NULL")
UNEXECUTED = sa.text(
    "kind = 'erasure' AND executed_at IS NULL AND closed_at IS NULL AND duplicate_of IS NULL"
)
DUPLICATE = sa.text("duplicate_of IS NOT NULL")


def upgrade() -> None:
    op.add_column("effaced_requests", sa.Column("duplicate_of", sa.Uuid(), nullable=True))
    op.drop_index("uq_effaced_requests_open_erasure", "effaced_requests")
    op.create_index(
        "uq_effaced_requests_unexecuted_erasure",
        "effaced_requests",
        ["subject_hmac"],
        unique=True,
        postgresql_where=UNEXECUTED,
        sqlite_where=UNEXECUTED,
    )
    op.create_index(
        "ix_effaced_requests_duplicate_of",
        "effaced_requests",
        ["duplicate_of"],
        postgresql_where=DUPLICATE,
        sqlite_where=DUPLICATE,
    )


def downgrade() -> None:
    """Fails, and changes nothing, while a person has several open erasures: the old index forbids them."""
    op.drop_index("ix_effaced_requests_duplicate_of", "effaced_requests")
    op.drop_index("uq_effaced_requests_unexecuted_erasure", "effaced_requests")
    op.create_index(
        "uq_effaced_requests_open_erasure",
        "effaced_requests",
        ["subject_hmac"],
        unique=True,
        postgresql_where=OPEN,
        sqlite_where=OPEN,
    )
    op.drop_column("effaced_requests", "duplicate_of")
