"""Targets of messages that API keys register, and who wants messages of which type

Code from before can't read the new types of messages, so it stops.

Revision ID: 0022
Revises: 0021
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0022"
down_revision = "0021"
OLDEST_CODE = 22
JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    op.add_column(
        "effaced_messages", sa.Column("only_sender", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_table(
        "effaced_message_targets",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("api_key_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("url_sealed", sa.LargeBinary(), nullable=False),
        sa.Column("secret_sealed", sa.LargeBinary(), nullable=False),
        sa.Column("previous_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("previous_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("events", JSON, nullable=False),
        sa.Column("all_requests", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["api_key_id"],
            ["effaced_api_keys.id"],
            name=op.f("fk_effaced_message_targets_api_key_id_effaced_api_keys"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_message_targets")),
        sa.UniqueConstraint("api_key_id", "name", name=op.f("uq_effaced_message_targets_api_key_id_name")),
    )
    op.create_table(
        "effaced_subscriptions",
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("target", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("type", "target", name=op.f("pk_effaced_subscriptions")),
    )
    # A target's deliveries, newest first: their ids grow with time.
    op.create_index("ix_effaced_deliveries_target", "effaced_deliveries", ["target", "id"])


def downgrade() -> None:
    op.drop_index("ix_effaced_deliveries_target", "effaced_deliveries")
    op.drop_table("effaced_subscriptions")
    op.drop_table("effaced_message_targets")
    # Code from before could read none of these.
    messages = sa.table("effaced_messages", sa.column("id"), sa.column("type", sa.String))
    deliveries = sa.table("effaced_deliveries", sa.column("id"), sa.column("message_id"))
    attempts = sa.table("effaced_delivery_attempts", sa.column("delivery_id"))
    new = sa.or_(
        messages.c.type.like("step.%"),
        messages.c.type.like("request.%") & (messages.c.type != "request.completed"),
        messages.c.type == "notify.test",
    )
    theirs = deliveries.c.message_id.in_(sa.select(messages.c.id).where(new))
    op.execute(attempts.delete().where(attempts.c.delivery_id.in_(sa.select(deliveries.c.id).where(theirs))))
    op.execute(deliveries.delete().where(theirs))
    op.execute(messages.delete().where(new))
    op.drop_column("effaced_messages", "only_sender")
