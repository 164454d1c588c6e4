"""The floor of an intake: a bare Flask route that writes the same rows, straight through psycopg.

It looks the key up, takes the person's lock, and writes request, identifiers, events and what the execution
writes, in two transactions of one pipeline each. Nothing is validated, planned, sealed or read back.

`python -m gunicorn "effaced.bench.intake_floor:create_app()"`, with what it needs in BENCH_FLOOR.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from datetime import UTC, datetime
from threading import local
from typing import Any
from uuid import UUID

from flask import Flask, Response, request
from psycopg.types.json import Jsonb
from sqlalchemy import make_url

from effaced.bench.erase_floor import erase_raw
from effaced.bench.floor import Raw, connect_raw
from effaced.model import new_id

ENVIRON = "BENCH_FLOOR"
_KEY = "SELECT id, approvals_needed, scopes, revoked_at FROM effaced_api_keys WHERE token_hash = %(token)s"
_PERSON = "SELECT id, email FROM bench_people WHERE id = %(person)s"
_LOCK = "SELECT pg_advisory_xact_lock(%(lock)s)"
_OPEN = """
    SELECT id, executed_at, duplicate_of FROM effaced_requests
    WHERE subject_hmac = %(hmac)s AND kind = 'erasure' AND closed_at IS NULL
"""
_REQUEST = """
    INSERT INTO effaced_requests
        (id, ref, kind, status, api_key_id, subject_key_id, subject_hmac, subject_sealed, datamap_hash,
         approvals_needed, received_at, due_at, execute_at, execute_attempts)
    VALUES (%(id)s, %(ref)s, 'erasure', 'approved', %(key)s, 'k1', %(hmac)s, %(sealed)s, %(map)s, 0,
            %(now)s, %(now)s, %(now)s, 0)
"""
_IDENTIFIERS = """
    INSERT INTO effaced_identifiers (request_id, kind, key_id, hmac)
    VALUES (%(id)s, 'subject_id', 'k1', %(hmac)s), (%(id)s, 'email', 'k1', %(hmac)s)
"""
_RECEIVED = """
    INSERT INTO effaced_audit_events (at, type, actor, request_id, subject_key_id, subject_hmac, payload)
    VALUES (%(now)s, 'REQUEST_RECEIVED', %(actor)s, %(id)s, 'k1', %(hmac)s, %(payload)s)
"""
_connections = local()


def create_app() -> Flask:
    app = Flask("floor")
    told = json.loads(os.environ[ENVIRON])
    url, systems = make_url(told["url"]), told["systems"]

    @app.post("/api/v1/requests")
    def intake() -> Response:
        if not hasattr(_connections, "raw"):
            _connections.raw = connect_raw(url)
        person = int(request.get_json()["subject"]["id"])
        token = request.headers["Authorization"].removeprefix("Bearer ")
        request_id = _receive(_connections.raw, token, person)
        erase_raw(_connections.raw, request_id, person=person, systems=systems)
        return Response(
            json.dumps({"id": str(request_id), "status": "approved"}), 201, content_type="application/json"
        )

    return app


def _receive(connection: Raw, token: str, person: int) -> UUID:
    request_id, hmac = new_id(), hashlib.sha256(str(person).encode()).hexdigest()
    hashed = hashlib.sha256(token.encode()).hexdigest()
    values: dict[str, Any] = {
        "token": hashed,
        "person": person,
        "hmac": hmac,
        "lock": int(hmac[:15], 16),
        "id": request_id,
        "ref": f"ER-{secrets.token_hex(4)}",
        "sealed": bytes(64),
        "map": "0" * 64,
        "now": datetime.now(UTC),
        "payload": Jsonb({"kind": "erasure", "approvals_needed": 0, "datamap_hash": "0" * 64}),
    }
    with connection.transaction(), connection.cursor() as cursor:
        # What decides is read before anything is written, as it has to be.
        with connection.pipeline():
            cursors = [connection.execute(each, values) for each in (_KEY, _PERSON, _LOCK, _OPEN)]
        (key,) = cursors[0].fetchall()
        values |= {"key": key[0], "actor": f"api_key:{key[0]}"}
        with connection.pipeline():
            for statement in (_REQUEST, _IDENTIFIERS, _RECEIVED):
                cursor.execute(statement, values)
    return request_id
