"""One lock per person: taking in, executing and cancelling for the same person happen one at a time.

A row lock on the request, where one is needed too, is taken first, except on requests that were executed.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import text
from sqlalchemy.orm import Session

from effaced.core.db import is_postgres

LOCK_PERSON = text("SELECT pg_advisory_xact_lock(number) FROM unnest(CAST(:numbers AS bigint[])) AS number")


def lock_numbers(hmacs: Collection[str]) -> dict[str, list[int]]:
    """The parameters of LOCK_PERSON: one number per keyed hash, in the order that everybody keeps."""
    return {"numbers": sorted(int.from_bytes(bytes.fromhex(each)[:8], signed=True) for each in hmacs)}


def lock_person(session: Session, hmacs: Collection[str]) -> None:
    """Hold the person's lock until the transaction ends.

    `hmacs` are the person's keyed hashes under every key: a request from before a rotation must not run
    concurrently with a later one. SQLite has one writer at a time and needs no lock.
    """
    if is_postgres(session):
        session.execute(LOCK_PERSON, lock_numbers(hmacs))
