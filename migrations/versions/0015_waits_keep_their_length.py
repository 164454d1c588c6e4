"""when a wait of the outbox or of a delivery began

Revision ID: 0015
Revises: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
OLDEST_CODE = 12

_WAITING = sa.text("waiting_since IS NOT NULL AND status <> 'in_flight'")
_PENDING = sa.text("waiting_since IS NOT NULL AND status = 'pending'")


def upgrade() -> None:
    for table, name, which in (
        ("effaced_outbox", "ix_effaced_outbox_waiting", _WAITING),
        ("effaced_deliveries", "ix_effaced_deliveries_waiting", _PENDING),
    ):
        op.add_column(table, sa.Column("waiting_since", sa.DateTime(timezone=True), nullable=True))
        op.create_index(name, table, ["waiting_since"], postgresql_where=which, sqlite_where=which)


def downgrade() -> None:
    op.drop_index("ix_effaced_deliveries_waiting", table_name="effaced_deliveries")
    op.drop_column("effaced_deliveries", "waiting_since")
    op.drop_index("ix_effaced_outbox_waiting", table_name="effaced_outbox")
    op.drop_column("effaced_outbox", "waiting_since")
