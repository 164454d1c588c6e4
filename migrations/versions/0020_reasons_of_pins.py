"""transitions keep the reason of a pin, for processes that know a breaker from them alone

Revision ID: 0020
Revises: 0019
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
OLDEST_CODE = 17


def upgrade() -> None:
    reason = sa.Column("control_reason", sa.String(length=64), nullable=True)
    op.add_column("effaced_breaker_transitions", reason)


def downgrade() -> None:
    op.drop_column("effaced_breaker_transitions", "control_reason")
