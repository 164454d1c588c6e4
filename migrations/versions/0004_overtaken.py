"""What was overtaken says so in its outcome, not in the name of an error.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
OLDEST_CODE = 4


def upgrade() -> None:
    op.execute(
        "UPDATE effaced_outbox SET outcome = 'superseded'"
        " WHERE operation = 'rectify' AND status = 'abandoned' AND last_error = 'Superseded'"
        " AND ref_sealed IS NULL"
    )


def downgrade() -> None:
    op.execute("UPDATE effaced_outbox SET outcome = NULL WHERE outcome = 'superseded'")
