"""Exports of the audit trail as jobs, with their files

Revision ID: 0023
Revises: 0021
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0021"
# Only adds.
OLDEST_CODE = 21


def upgrade() -> None:
    open_ = sa.text("status IN ('pending', 'running')")
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "effaced_audit_exports",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("api_key_id", sa.Uuid(), nullable=False),
        sa.Column("own_request_only", sa.Boolean(), nullable=False),
        sa.Column("format", sa.String(length=32), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=True),
        sa.Column("type", sa.String(length=64), nullable=True),
        sa.Column("actor", sa.String(length=80), nullable=True),
        sa.Column("since", moment, nullable=True),
        sa.Column("until", moment, nullable=True),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("gate", moment, nullable=False),
        sa.Column("waiting_since", moment, nullable=True),
        sa.Column("total", sa.BigInteger(), nullable=True),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("ready_at", moment, nullable=True),
        sa.Column("expires_at", moment, nullable=True),
        sa.Column("last_error", sa.String(length=255), nullable=True),
        sa.ForeignKeyConstraint(
            ["api_key_id"],
            ["effaced_api_keys.id"],
            name=op.f("fk_effaced_audit_exports_api_key_id_effaced_api_keys"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_audit_exports")),
    )
    op.create_index("ix_effaced_audit_exports_key", "effaced_audit_exports", ["api_key_id", "id"])
    op.create_index(
        "ix_effaced_audit_exports_open",
        "effaced_audit_exports",
        ["gate", "id"],
        postgresql_where=open_,
        sqlite_where=open_,
    )
    op.create_table(
        "effaced_audit_export_chunks",
        sa.Column("export_id", sa.Uuid(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["export_id"],
            ["effaced_audit_exports.id"],
            name=op.f("fk_effaced_audit_export_chunks_export_id_effaced_audit_exports"),
        ),
        sa.PrimaryKeyConstraint("export_id", "token", "number", name=op.f("pk_effaced_audit_export_chunks")),
    )


def downgrade() -> None:
    op.drop_table("effaced_audit_export_chunks")
    op.drop_table("effaced_audit_exports")
