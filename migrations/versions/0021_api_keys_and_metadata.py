"""API keys that act for an officer, or plan only; metadata of requests; headers of stored answers

Code from before would execute what a sandbox key sends, so it stops.

Revision ID: 0021
Revises: 0020
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0021"
down_revision = "0020"
OLDEST_CODE = 21
JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.add_column("effaced_api_keys", sa.Column("officer_id", sa.Uuid(), nullable=True))
    op.add_column(
        "effaced_api_keys", sa.Column("sandbox", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("effaced_api_keys", sa.Column("metadata_keys", JSON, nullable=True))
    op.add_column("effaced_requests", sa.Column("metadata", JSON, nullable=True))
    op.create_index("ix_effaced_requests_sender", "effaced_requests", ["api_key_id", "due_at", "id"])
    op.add_column("effaced_idempotency", sa.Column("headers", JSON, nullable=True))
    op.create_table(
        "effaced_sandbox_requests",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("ref", sa.String(length=16), nullable=False),
        sa.Column("api_key_id", sa.Uuid(), nullable=False),
        sa.Column("answer", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["api_key_id"],
            ["effaced_api_keys.id"],
            name=op.f("fk_effaced_sandbox_requests_api_key_id_effaced_api_keys"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_sandbox_requests")),
        sa.UniqueConstraint("ref", name=op.f("uq_effaced_sandbox_requests_ref")),
    )
    op.create_index("ix_effaced_sandbox_requests_key", "effaced_sandbox_requests", ["api_key_id", "id"])


def downgrade() -> None:
    op.drop_table("effaced_sandbox_requests")
    op.drop_column("effaced_idempotency", "headers")
    op.drop_index("ix_effaced_requests_sender", "effaced_requests")
    op.drop_column("effaced_requests", "metadata")
    op.drop_column("effaced_api_keys", "metadata_keys")
    op.drop_column("effaced_api_keys", "sandbox")
    op.drop_column("effaced_api_keys", "officer_id")
