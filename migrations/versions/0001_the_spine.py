"""the spine

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
OLDEST_CODE = 1


JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
TABLES = (
    "effaced_api_keys",
    "effaced_attempts",
    "effaced_audit_events",
    "effaced_dead_letters",
    "effaced_notes",
    "effaced_officers",
    "effaced_operations",
    "effaced_outbox",
    "effaced_idempotency",
    "effaced_requests",
    "effaced_approvals",
    "effaced_identifiers",
)
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def where(condition: str) -> dict[str, sa.TextClause]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "effaced_api_keys",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("approvals_needed", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_api_keys")),
        sa.UniqueConstraint("name", name=op.f("uq_effaced_api_keys_name")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_effaced_api_keys_token_hash")),
    )
    op.create_table(
        "effaced_attempts",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("entry_id", sa.Uuid(), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("resolver", sa.String(length=255), nullable=False),
        sa.Column("operation", sa.String(length=32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("latency_ms", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_attempts")),
    )
    op.create_index("ix_effaced_attempts_entry", "effaced_attempts", ["entry_id", "id"])
    op.create_index("ix_effaced_attempts_request", "effaced_attempts", ["request_id", "id"])
    op.create_index("ix_effaced_attempts_resolver", "effaced_attempts", ["resolver", "at"])

    op.create_table(
        "effaced_audit_events",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("type", sa.String(length=64), nullable=False),
        sa.Column("actor", sa.String(length=80), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=True),
        sa.Column("entry_id", sa.Uuid(), nullable=True),
        sa.Column("subject_key_id", sa.String(length=16), nullable=True),
        sa.Column("subject_hmac", sa.String(length=64), nullable=True),
        sa.Column("payload", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_audit_events")),
    )
    op.create_index("ix_effaced_audit_events_actor", "effaced_audit_events", ["actor", "id"])
    op.create_index("ix_effaced_audit_events_request", "effaced_audit_events", ["request_id", "id"])
    op.create_index("ix_effaced_audit_events_subject", "effaced_audit_events", ["subject_hmac", "id"])
    op.create_index("ix_effaced_audit_events_type", "effaced_audit_events", ["type", "id"])

    op.create_table(
        "effaced_dead_letters",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("domain", sa.String(length=32), nullable=False),
        sa.Column("failure_type", sa.String(length=255), nullable=False),
        sa.Column("error_code", sa.String(length=64), nullable=False),
        sa.Column("entry_id", sa.Uuid(), nullable=True),
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("resolver", sa.String(length=255), nullable=True),
        sa.Column("subject_key_id", sa.String(length=16), nullable=False),
        sa.Column("subject_hmac", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("max_retries", sa.Integer(), nullable=False),
        sa.Column("recommended_action", sa.String(length=32), nullable=False),
        sa.Column("context", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("resolution", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_dead_letters")),
        sa.UniqueConstraint("entry_id", "domain", name=op.f("uq_effaced_dead_letters_entry_id_domain")),
    )
    op.create_index("ix_effaced_dead_letters_request", "effaced_dead_letters", ["request_id"])
    op.create_index("ix_effaced_dead_letters_status", "effaced_dead_letters", ["status", "created_at", "id"])

    op.create_table(
        "effaced_notes",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=True),
        sa.Column("author", sa.String(length=80), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("text_sealed", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_notes")),
    )
    op.create_index("ix_effaced_notes_request", "effaced_notes", ["request_id", "at"])

    op.create_table(
        "effaced_officers",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("password_hash", sa.String(length=255), nullable=False),
        sa.Column("session_epoch", sa.Integer(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("failed_sign_ins", sa.Integer(), nullable=False),
        sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_sign_in_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_officers")),
        sa.UniqueConstraint("email", name=op.f("uq_effaced_officers_email")),
    )
    op.create_table(
        "effaced_operations",
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("operation", sa.String(length=32), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("remaining", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", "operation", name=op.f("pk_effaced_operations")),
    )
    op.create_table(
        "effaced_outbox",
        sa.Column("entry_id", sa.Uuid(), nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("operation", sa.String(length=32), nullable=False),
        sa.Column("resolver", sa.String(length=255), nullable=False),
        sa.Column("subject_key_id", sa.String(length=16), nullable=False),
        sa.Column("subject_hmac", sa.String(length=64), nullable=False),
        sa.Column("ref_kind", sa.String(length=64), nullable=False),
        sa.Column("ref_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("claimed_alone", sa.Boolean(), nullable=False),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.Column("gate", sa.DateTime(timezone=True), nullable=True),
        sa.Column("enqueued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("aging_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_error", sa.String(length=255), nullable=True),
        sa.Column("times_parked", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(length=32), nullable=True),
        sa.Column("retained_basis", sa.String(length=64), nullable=True),
        sa.Column("verification", sa.String(length=32), nullable=True),
        sa.Column("verified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("verify_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_effaced_outbox")),
    )
    op.create_index(
        "ix_effaced_outbox_fresh",
        "effaced_outbox",
        ["resolver", "enqueued_at", "entry_id"],
        **where("status = 'pending' AND gate IS NULL"),
    )
    op.create_index(
        "ix_effaced_outbox_gated",
        "effaced_outbox",
        ["resolver", "gate"],
        **where("status IN ('pending', 'failed', 'scheduled') AND gate IS NOT NULL"),
    )
    op.create_index(
        "ix_effaced_outbox_leased", "effaced_outbox", ["resolver", "gate"], **where("status = 'in_flight'")
    )
    op.create_index("ix_effaced_outbox_request", "effaced_outbox", ["request_id", "entry_id"])
    op.create_index("ix_effaced_outbox_status", "effaced_outbox", ["status", "gate", "entry_id"])
    op.create_index(
        "ix_effaced_outbox_unverified",
        "effaced_outbox",
        ["resolver", "verify_due_at"],
        **where("verify_due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_effaced_outbox_verification",
        "effaced_outbox",
        ["verification", "entry_id"],
        **where("verification IS NOT NULL"),
    )

    op.create_table(
        "effaced_idempotency",
        sa.Column("api_key_id", sa.Uuid(), nullable=False),
        sa.Column("key_hmac", sa.String(length=64), nullable=False),
        sa.Column("body_hmac", sa.String(length=64), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=False),
        sa.Column("answer", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["api_key_id"], ["effaced_api_keys.id"], name=op.f("fk_effaced_idempotency_api_key_id")
        ),
        sa.PrimaryKeyConstraint("api_key_id", "key_hmac", name=op.f("pk_effaced_idempotency")),
    )
    op.create_table(
        "effaced_requests",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("ref", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("api_key_id", sa.Uuid(), nullable=True),
        sa.Column("entered_by", sa.Uuid(), nullable=True),
        sa.Column("subject_key_id", sa.String(length=16), nullable=False),
        sa.Column("subject_hmac", sa.String(length=64), nullable=False),
        sa.Column("subject_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("datamap_hash", sa.String(length=64), nullable=False),
        sa.Column("approvals_needed", sa.Integer(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("execute_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("execute_attempts", sa.Integer(), nullable=False),
        sa.Column("executed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["api_key_id"], ["effaced_api_keys.id"], name=op.f("fk_effaced_requests_api_key_id")
        ),
        sa.ForeignKeyConstraint(
            ["entered_by"], ["effaced_officers.id"], name=op.f("fk_effaced_requests_entered_by")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_effaced_requests")),
        sa.UniqueConstraint("ref", name=op.f("uq_effaced_requests_ref")),
    )
    op.create_index("ix_effaced_requests_completed", "effaced_requests", ["completed_at"])
    op.create_index("ix_effaced_requests_due", "effaced_requests", ["due_at", "id"])
    op.create_index(
        "ix_effaced_requests_executable",
        "effaced_requests",
        ["execute_at"],
        **where("status = 'approved' AND execute_at IS NOT NULL"),
    )
    op.create_index(
        "ix_effaced_requests_open_due", "effaced_requests", ["due_at", "id"], **where("closed_at IS NULL")
    )
    op.create_index("ix_effaced_requests_received", "effaced_requests", ["received_at"])
    op.create_index("ix_effaced_requests_status", "effaced_requests", ["status", "due_at", "id"])
    op.create_index(
        "uq_effaced_requests_open_erasure",
        "effaced_requests",
        ["subject_hmac"],
        unique=True,
        **where("kind = 'erasure' AND closed_at IS NULL"),
    )

    op.create_table(
        "effaced_approvals",
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("officer_id", sa.Uuid(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note_id", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["officer_id"], ["effaced_officers.id"], name=op.f("fk_effaced_approvals_officer_id")
        ),
        sa.ForeignKeyConstraint(
            ["request_id"], ["effaced_requests.id"], name=op.f("fk_effaced_approvals_request_id")
        ),
        sa.PrimaryKeyConstraint("request_id", "officer_id", name=op.f("pk_effaced_approvals")),
    )
    op.create_table(
        "effaced_identifiers",
        sa.Column("request_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=16), nullable=False),
        sa.Column("hmac", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["effaced_requests.id"], name=op.f("fk_effaced_identifiers_request_id")
        ),
        sa.PrimaryKeyConstraint("request_id", "kind", "key_id", name=op.f("pk_effaced_identifiers")),
    )
    op.create_index("ix_effaced_identifiers_lookup", "effaced_identifiers", ["hmac", "kind"])
    protect_trail()


def protect_trail() -> None:
    """Let the trail only grow. Whoever rebuilds this table later has to call the like of this again."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            """
            CREATE FUNCTION effaced_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION 'effaced_audit_events only grows: % refused', TG_OP
                    USING ERRCODE = 'integrity_constraint_violation';
            END $$
            """
        )
        op.execute(
            "CREATE TRIGGER effaced_audit_no_change BEFORE UPDATE OR DELETE ON effaced_audit_events "
            "FOR EACH ROW EXECUTE FUNCTION effaced_audit_refuse()"
        )
        op.execute(
            "CREATE TRIGGER effaced_audit_no_truncate BEFORE TRUNCATE ON effaced_audit_events "
            "FOR EACH STATEMENT EXECUTE FUNCTION effaced_audit_refuse()"
        )
        for trigger in ("effaced_audit_no_change", "effaced_audit_no_truncate"):
            # Also when somebody has switched triggers off by acting as a replica.
            op.execute(f"ALTER TABLE effaced_audit_events ENABLE ALWAYS TRIGGER {trigger}")
        return
    for name, moment in (
        ("effaced_audit_no_update", "BEFORE UPDATE ON effaced_audit_events"),
        ("effaced_audit_no_delete", "BEFORE DELETE ON effaced_audit_events"),
        # INSERT OR REPLACE would delete the old row without asking a DELETE trigger.
        (
            "effaced_audit_no_replace",
            "BEFORE INSERT ON effaced_audit_events "
            "WHEN EXISTS (SELECT 1 FROM effaced_audit_events WHERE id = NEW.id)",
        ),
    ):
        op.execute(
            f"CREATE TRIGGER {name} {moment} "
            "BEGIN SELECT RAISE(ABORT, 'effaced_audit_events only grows'); END"
        )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION effaced_audit_refuse()")
