"""The floor: the least SQL that writes what a drain writes, straight through psycopg.

Per batch, as the runner does it: one transaction that claims and one that settles. Either is one statement,
and no row travels back to the database: what a settle writes is made out of the claimed rows where they are.
No objects, no typed events, no resolver, no sealed references opened, no fencing. Counters are locked in the
order of their requests, or two processes would end in a deadlock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import URL

Raw = psycopg.Connection[tuple[Any, ...]]

_CLAIM = """
    WITH picked AS (
        SELECT entry_id FROM effaced_outbox
        WHERE resolver = %(resolver)s AND status = 'pending' AND gate IS NULL AND waits_for IS NULL
        ORDER BY enqueued_at, entry_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    )
    UPDATE effaced_outbox o
    SET status = 'in_flight', attempts = attempts + 1, token = token + 1, gate = %(lease)s,
        waiting_since = %(now)s, last_attempt_at = %(now)s
    FROM picked WHERE o.entry_id = picked.entry_id
    RETURNING o.entry_id, o.request_id, o.subject_key_id, o.subject_hmac, o.ref_sealed
"""
_SETTLE = """
    WITH done AS (
        UPDATE effaced_outbox
        SET status = 'succeeded', outcome = 'erased', gate = NULL, waiting_since = NULL, ended_at = %(now)s,
            ref_sealed = NULL
        WHERE entry_id = ANY(%(entries)s)
        RETURNING entry_id, request_id, subject_key_id, subject_hmac, resolver, attempts, last_attempt_at,
            aging_since
    ), steps AS (
        INSERT INTO effaced_audit_events
            (at, type, actor, request_id, entry_id, subject_key_id, subject_hmac, payload)
        SELECT %(now)s, 'ERASURE_STEP_SUCCEEDED', 'system', request_id, entry_id, subject_key_id,
            subject_hmac, jsonb_build_object(
                'resolver', resolver, 'outcome', 'erased', 'attempts', attempts, 'evidence', 'vendor_word'
            )
        FROM done
    ), tries AS (
        INSERT INTO effaced_attempts
            (entry_id, request_id, number, resolver, operation, role, at, outcome, latency_ms, first,
             delay_before_ms)
        SELECT entry_id, request_id, attempts, resolver, 'erase', 'erase', last_attempt_at, 'success', 0,
            true, extract(epoch FROM last_attempt_at - aging_since) * 1000
        FROM done
    ), locked AS MATERIALIZED (
        SELECT request_id, number FROM effaced_operations o
        JOIN (SELECT request_id, count(*) AS number FROM done GROUP BY request_id) d USING (request_id)
        WHERE o.operation = 'erase' ORDER BY request_id FOR UPDATE OF o
    ), counted AS (
        UPDATE effaced_operations o SET remaining = remaining - number
        FROM locked WHERE o.request_id = locked.request_id AND o.operation = 'erase'
        RETURNING o.request_id, remaining
    ), completed AS (
        UPDATE effaced_requests
        SET status = 'completed', completed_at = %(now)s, closed_at = %(now)s, subject_sealed = NULL
        WHERE id IN (SELECT request_id FROM counted WHERE remaining = 0)
        RETURNING id, subject_key_id, subject_hmac
    ), told AS (
        INSERT INTO effaced_messages (id, type, payload, request_id, created_at)
        SELECT gen_random_uuid(), 'request.completed', '{"operation": "erase"}', id, %(now)s FROM completed
    )
    INSERT INTO effaced_audit_events (at, type, actor, request_id, subject_key_id, subject_hmac, payload)
    SELECT %(now)s, 'ERASURE_COMPLETED', 'system', id, subject_key_id, subject_hmac, '{"operation": "erase"}'
    FROM completed
"""


def connect_raw(url: URL) -> Raw:
    """A connection of psycopg's own; every statement is prepared when it is first run."""
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    connection = psycopg.connect(address, options="-c timezone=UTC")
    connection.prepare_threshold = 0
    return connection


def drain_raw(connection: Raw, *, resolver: str, batch: int) -> int:
    """Work through everything pending. Returns how many."""
    total = 0
    while claimed := claim_raw(connection, resolver=resolver, batch=batch):
        connection.execute(_SETTLE, {"now": datetime.now(UTC), "entries": claimed})
        connection.commit()
        total += len(claimed)
    return total


def claim_raw(connection: Raw, *, resolver: str, batch: int) -> list[UUID]:
    """Claim a batch, in a transaction of its own."""
    now = datetime.now(UTC)
    values = {"resolver": resolver, "batch": batch, "now": now, "lease": now + timedelta(minutes=5)}
    rows = connection.execute(_CLAIM, values).fetchall()
    connection.commit()
    return [row[0] for row in rows]


def count_raw(connection: Raw) -> dict[str, int]:
    """The number of entries by status."""
    rows = connection.execute("SELECT status, count(*) FROM effaced_outbox GROUP BY status").fetchall()
    connection.commit()
    return dict(rows)
