"""requests stay open until their read-backs are confirmed or attested

Counts unconfirmed read-backs per operation, names those that were given up, takes "verified" back from
expiries that nobody read back, and reopens requests that stood as completed over an unconfirmed read-back.

Revision ID: 0012
Revises: 0011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from effaced.core import clock

revision = "0012"
down_revision = "0011"
OLDEST_CODE = 12

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
STANDING_OUT = "unverified > 0"
UNCONFIRMED = ("due", "still_present", "unverifiable")

outbox = sa.table(
    "effaced_outbox",
    *(sa.column(name) for name in ("request_id", "operation", "status", "outcome", "verification")),
    *(sa.column(name, MOMENT) for name in ("ended_at", "verified_at", "verify_due_at")),
)
operations = sa.table(
    "effaced_operations",
    *(sa.column(name) for name in ("request_id", "operation", "remaining", "unverified")),
)
requests = sa.table(
    "effaced_requests",
    sa.column("id", sa.Uuid()),
    *(sa.column(name) for name in ("kind", "status", "subject_key_id", "subject_hmac")),
    *(sa.column(name, MOMENT) for name in ("executed_at", "completed_at", "closed_at")),
)
events = sa.table(
    "effaced_audit_events",
    sa.column("at", MOMENT),
    sa.column("type", sa.String()),
    sa.column("actor", sa.String()),
    sa.column("request_id", sa.Uuid()),
    sa.column("subject_key_id", sa.String()),
    sa.column("subject_hmac", sa.String()),
    sa.column("payload", JSON),
)
unverified_of = (
    sa.select(sa.func.sum(operations.c.unverified))
    .where(operations.c.request_id == requests.c.id)
    .scalar_subquery()
)


def upgrade() -> None:
    op.add_column(
        "effaced_operations",
        sa.Column("unverified", sa.Integer(), nullable=False, server_default=sa.text("0")),
    )
    op.create_index(
        "ix_effaced_operations_unverified",
        "effaced_operations",
        ["request_id"],
        postgresql_where=sa.text(STANDING_OUT),
        sqlite_where=sa.text(STANDING_OUT),
    )
    _correct_outbox()
    _count_unverified()
    _reopen()


def _correct_outbox() -> None:
    given_up = outbox.c.verification == "due", outbox.c.verify_due_at.is_(None)
    op.execute(outbox.update().where(*given_up).values(verification="unverifiable"))
    not_read_back = sa.or_(outbox.c.verification.is_(None), outbox.c.verification != "confirmed")
    expired = outbox.c.outcome == "verified_expiry"
    op.execute(outbox.update().where(expired, not_read_back).values(outcome="expired"))
    by_hand = outbox.c.outcome == "attested", outbox.c.operation == "erase", outbox.c.verification.is_(None)
    op.execute(outbox.update().where(*by_hand).values(verification="attested", verified_at=outbox.c.ended_at))


def _count_unverified() -> None:
    mine = outbox.c.request_id == operations.c.request_id, outbox.c.operation == operations.c.operation
    unconfirmed = outbox.c.status == "succeeded", outbox.c.verification.in_(UNCONFIRMED)
    counted = sa.select(sa.func.count()).select_from(outbox).where(*mine, *unconfirmed).scalar_subquery()
    some = sa.select(outbox.c.request_id).where(*unconfirmed)
    op.execute(operations.update().where(operations.c.request_id.in_(some)).values(unverified=counted))


def _reopen() -> None:
    connection = op.get_bind()
    wrong = requests.c.status == "completed", unverified_of > 0
    columns = requests.c.id, requests.c.subject_key_id, requests.c.subject_hmac, unverified_of
    found = connection.execute(sa.select(*columns).where(*wrong).order_by(requests.c.id)).all()
    if not found:
        return
    connection.execute(
        events.insert(),
        [
            {
                "at": clock.now(),
                "type": "REQUEST_REOPENED",
                "actor": "system",
                "request_id": request_id,
                "subject_key_id": key_id,
                "subject_hmac": hmac,
                "payload": {"unverified": int(unverified)},
            }
            for request_id, key_id, hmac, unverified in found
        ],
    )
    connection.execute(
        requests.update().where(*wrong).values(status="running", completed_at=None, closed_at=None)
    )


def downgrade() -> None:
    ended = (
        sa.select(sa.func.max(outbox.c.ended_at))
        .where(outbox.c.request_id == requests.c.id)
        .scalar_subquery()
    )
    left = (
        sa.select(sa.func.sum(operations.c.remaining))
        .where(operations.c.request_id == requests.c.id)
        .scalar_subquery()
    )
    op.execute(
        requests.update()
        .where(requests.c.status == "running", left == 0, unverified_of > 0)
        .values(status="completed", completed_at=ended, closed_at=ended)
    )
    op.execute(outbox.update().where(outbox.c.verification == "unverifiable").values(verification="due"))
    op.execute(outbox.update().where(outbox.c.outcome == "expired").values(outcome="verified_expiry"))
    op.drop_index("ix_effaced_operations_unverified", table_name="effaced_operations")
    op.drop_column("effaced_operations", "unverified")
