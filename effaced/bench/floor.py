"""The floor: the least SQL that writes what a drain writes, straight through psycopg.

Per batch, as the runner does it: one transaction that claims, one that writes events, attempts,
statuses, counters and completions. No objects, no typed events, no resolver, no fencing.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
from sqlalchemy import URL

_CLAIM = """
    WITH picked AS (
        SELECT entry_id FROM effaced_outbox
        WHERE resolver = %(resolver)s AND status = 'pending' AND gate IS NULL
        ORDER BY enqueued_at, entry_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
    )
    UPDATE effaced_outbox o
    SET status = 'in_flight', attempts = attempts + 1, token = token + 1, gate = %(lease)s,
        last_attempt_at = %(now)s
    FROM picked WHERE o.entry_id = picked.entry_id
    RETURNING o.entry_id, o.request_id, o.subject_key_id, o.subject_hmac, o.ref_sealed
"""
_EVENTS = """
    INSERT INTO effaced_audit_events
        (at, type, actor, request_id, entry_id, subject_key_id, subject_hmac, payload)
    VALUES (%s, %s, 'system', %s, %s, %s, %s, %s)
"""
_ATTEMPTS = """
    INSERT INTO effaced_attempts (entry_id, request_id, number, resolver, operation, at, outcome, latency_ms)
    VALUES (%s, %s, 1, %s, 'erase', %s, 'success', 0)
"""
_STATUSES = """
    UPDATE effaced_outbox
    SET status = 'succeeded', outcome = 'erased', gate = NULL, ended_at = %s, ref_sealed = NULL
    WHERE entry_id = ANY(%s)
"""
_COUNTERS = """
    UPDATE effaced_operations SET remaining = remaining - %s WHERE request_id = ANY(%s)
    RETURNING request_id, remaining
"""
_COMPLETED = """
    UPDATE effaced_requests SET status = 'completed', completed_at = %s, closed_at = %s, subject_sealed = NULL
    WHERE id = ANY(%s)
"""


def drain_raw(url: URL, *, resolver: str, batch: int) -> int:
    """Work through everything pending; how many."""
    total = 0
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address) as connection:
        while claimed := _claim(connection, resolver, batch):
            _settle(connection, resolver, claimed)
            total += len(claimed)
    return total


def _claim(
    connection: psycopg.Connection, resolver: str, batch: int
) -> list[tuple[UUID, UUID, str, str, bytes]]:
    now = datetime.now(UTC)
    values = {"resolver": resolver, "batch": batch, "now": now, "lease": now + timedelta(minutes=5)}
    rows = connection.execute(_CLAIM, values, prepare=True).fetchall()
    connection.commit()
    return rows


def _settle(
    connection: psycopg.Connection, resolver: str, claimed: list[tuple[UUID, UUID, str, str, bytes]]
) -> None:
    now = datetime.now(UTC)
    payload = json.dumps({"resolver": resolver, "outcome": "erased", "attempts": 1})
    done = json.dumps({"operation": "erase"})
    by_number: dict[int, list[UUID]] = {}
    for request_id, number in Counter(row[1] for row in claimed).items():
        by_number.setdefault(number, []).append(request_id)
    with connection.cursor() as cursor:
        cursor.executemany(
            _EVENTS,
            [(now, "ERASURE_STEP_SUCCEEDED", row[1], row[0], row[2], row[3], payload) for row in claimed],
        )
        cursor.executemany(_ATTEMPTS, [(row[0], row[1], resolver, now) for row in claimed])
        cursor.execute(_STATUSES, (now, [row[0] for row in claimed]), prepare=True)
        complete: list[UUID] = []
        for number, request_ids in by_number.items():
            cursor.execute(_COUNTERS, (number, request_ids), prepare=True)
            complete += [request_id for request_id, remaining in cursor.fetchall() if remaining == 0]
        if complete:
            cursor.executemany(
                _EVENTS,
                [(now, "ERASURE_COMPLETED", request_id, None, None, None, done) for request_id in complete],
            )
            cursor.execute(_COMPLETED, (now, now, complete), prepare=True)
    connection.commit()
