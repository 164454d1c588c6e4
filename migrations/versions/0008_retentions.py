"""what erasures have left under `retain`, so that it can be erased when that has ended

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
OLDEST_CODE = 8

MOMENT = sa.DateTime(timezone=True)
OPEN = {"postgresql_where": sa.text("closed_at IS NULL"), "sqlite_where": sa.text("closed_at IS NULL")}


def upgrade() -> None:
    op.create_table(
        "effaced_retentions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("table_name", sa.String(length=255), nullable=False),
        sa.Column("subject_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("datamap_hash", sa.String(length=64), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("undated", sa.Integer(), nullable=False),
        sa.Column("first_due", sa.Date(), nullable=True),
        sa.Column("error", sa.String(length=255), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("looked_at", MOMENT, nullable=False),
        sa.Column("closed_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_retentions")),
        sa.ForeignKeyConstraint(
            ["request_id"], ["effaced_requests.id"], name=op.f("fk_effaced_retentions_request_id")
        ),
        sa.UniqueConstraint(
            "request_id", "table_name", name=op.f("uq_effaced_retentions_request_id_table_name")
        ),
    )
    op.create_index("ix_effaced_retentions_due", "effaced_retentions", ["first_due", "id"], **OPEN)
    op.create_index("ix_effaced_retentions_looked", "effaced_retentions", ["looked_at"], **OPEN)


def downgrade() -> None:
    op.drop_table("effaced_retentions")
