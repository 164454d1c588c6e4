"""The floor of an execution: the same rows changed and written, in one pipeline, straight through psycopg.

Nothing is sealed, looked up or read back, no plan decides on the order, nobody else is kept out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from effaced.bench.floor import Raw
from effaced.model import new_id

_LOCK = "SELECT subject_sealed FROM effaced_requests WHERE id = %(id)s FOR UPDATE SKIP LOCKED"
_ERASE = (
    "DELETE FROM bench_letters WHERE person = %(person)s",
    "DELETE FROM bench_orders WHERE person = %(person)s",
    "DELETE FROM bench_people WHERE id = %(person)s",
)
_EVENT = """
    INSERT INTO effaced_audit_events (at, type, actor, request_id, subject_key_id, subject_hmac, payload)
    SELECT %(now)s, 'LOCAL_ERASURE_EXECUTED', 'system', id, subject_key_id, subject_hmac, %(payload)s
    FROM effaced_requests WHERE id = %(id)s
"""
_OPERATION = "INSERT INTO effaced_operations VALUES (%(id)s, 'erase', %(calls)s, %(calls)s)"
_ENTRIES = """
    INSERT INTO effaced_outbox
        (entry_id, request_id, operation, resolver, ref_kind, status, ref_sealed, attempts, token,
         claimed_alone, crashes, times_parked, enqueued_at, aging_since, subject_key_id, subject_hmac)
    SELECT entry_id, r.id, 'erase', resolver, 'person', 'pending', %(sealed)s, 0, 0, false, 0, 0, %(now)s,
        %(now)s, r.subject_key_id, r.subject_hmac
    FROM effaced_requests r, unnest(%(entries)s::uuid[], %(systems)s::text[]) AS e (entry_id, resolver)
    WHERE r.id = %(id)s
"""
_RUNNING = """
    UPDATE effaced_requests SET status = 'running', executed_at = %(now)s, execute_at = NULL WHERE id = %(id)s
"""


def erase_raw(connection: Raw, request_id: UUID, *, person: int, systems: Sequence[str]) -> None:
    """Execute one request."""
    rows = [{"table": table, "action": "deleted", "rows": 1} for table in ("letters", "orders", "people")]
    values = {
        "id": request_id,
        "person": person,
        "now": datetime.now(UTC),
        "payload": Jsonb({"datamap_hash": "0" * 64, "tables": rows, "retained": [], "external_calls": 4}),
        "calls": len(systems),
        "entries": [new_id() for _ in systems],
        "systems": list(systems),
        "sealed": bytes(48),
    }
    with connection.pipeline(), connection.transaction(), connection.cursor() as cursor:
        for statement in (_LOCK, *_ERASE, _EVENT, _OPERATION, _ENTRIES, _RUNNING):
            cursor.execute(statement, values)
