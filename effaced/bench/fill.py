"""Rows to work on, and rows that are only in the way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from effaced.bench.floor import Raw
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.model import SubjectKey, new_id

PER_REQUEST = 4
_REQUESTS = """
    COPY effaced_requests
        (id, ref, kind, status, datamap_hash, approvals_needed, received_at, due_at, execute_attempts,
         subject_key_id, subject_hmac)
    FROM STDIN
"""
_OPERATIONS = "COPY effaced_operations (request_id, operation, total, remaining) FROM STDIN"
_ENTRIES = """
    COPY effaced_outbox
        (entry_id, request_id, operation, resolver, ref_kind, status, ref_sealed, attempts, token,
         claimed_alone, crashes, times_parked, enqueued_at, aging_since, subject_key_id, subject_hmac)
    FROM STDIN
"""
# Made in the database, without a request: nobody looks at one. Their ids are older than any that is new.
_CROWD = """
    INSERT INTO effaced_outbox
        (entry_id, request_id, operation, resolver, ref_kind, status, outcome, attempts, token, claimed_alone,
         crashes, times_parked, enqueued_at, aging_since, last_attempt_at, gate, ended_at, subject_key_id,
         subject_hmac)
    SELECT lpad(to_hex(%(from)s + n), 32, '0')::uuid, lpad(to_hex(n / 4), 32, '0')::uuid, 'erase',
        %(resolver)s, 'bench', %(status)s, %(outcome)s, 1, 1, false, 0, %(parked)s,
        now() - interval '1 day', now(), now(), %(gate)s::timestamptz + n * interval '1 second', %(ended)s,
        'k1', lpad(to_hex(n / 4), 64, '0')
    FROM generate_series(1, %(rows)s) n
"""
_BEYOND = 1 << 40


def fill(
    connection: Raw, keyring: Keyring, *, entries: int, resolver: str, per_request: int = PER_REQUEST
) -> None:
    """Put `entries` pending calls of running requests there; each request but the last has `per_request`."""
    now = clock.now()
    sizes = [min(per_request, entries - start) for start in range(0, entries, per_request)]
    requests = [(new_id(), size) for size in sizes]
    subjects = {request_id: keyring.subject_key(str(request_id)) for request_id, _ in requests}
    _copy(
        connection,
        _REQUESTS,
        (
            (
                each,
                f"B{each.hex[-12:]}",
                "erasure",
                "running",
                "0" * 64,
                0,
                now,
                now,
                0,
                *_subject_columns(subjects[each]),
            )
            for each, _ in requests
        ),
    )
    _copy(connection, _OPERATIONS, ((each, "erase", size, size) for each, size in requests))
    _copy(
        connection,
        _ENTRIES,
        (
            (
                entry_id, each, "erase", resolver, "bench", "pending", _sealed(keyring, entry_id), 0, 0,
                False, 0, 0, now, now, *_subject_columns(subjects[each]),
            )
            for each, size in requests
            for entry_id in (new_id() for _ in range(size))
        ),
    )  # fmt: skip
    connection.commit()


def fill_crowd(connection: Raw, *, resolver: str, terminal: int = 0, parked: int = 0) -> None:
    """Put entries there that nobody may claim: so many that have succeeded, and so many at a horizon."""
    now = clock.now()
    common = {"resolver": resolver}
    succeeded = {"status": "succeeded", "outcome": "erased", "parked": 0, "gate": None, "ended": now}
    horizon = now + timedelta(days=30)
    waiting = {"status": "scheduled", "outcome": None, "parked": 1, "gate": horizon, "ended": None}
    connection.execute(_CROWD, common | succeeded | {"from": 0, "rows": terminal})
    connection.execute(_CROWD, common | waiting | {"from": _BEYOND, "rows": parked})
    connection.commit()


def _copy(connection: Raw, statement: str, rows: Iterator[tuple[Any, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _ref(request_id: UUID) -> str:
    return f"B{request_id.hex[-12:]}"


def _subject_columns(subject: SubjectKey) -> tuple[str, str]:
    return subject.key_id, subject.hmac


def _sealed(keyring: Keyring, entry_id: UUID) -> bytes:
    return keyring.seal(b"bench", purpose="ref", context=str(entry_id))
