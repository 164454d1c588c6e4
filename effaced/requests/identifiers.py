"""Finding a person's requests by an identifier, of which only keyed hashes are stored."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.db.sql import insert_rows
from effaced.requests.tables import Identifier, Request

SUBJECT_ID = "subject_id"
# No e-mail address is longer, and nothing longer can be searched for.
LONGEST = 320
# What people type where a field must not be empty. Two rows that both have it have nothing in common.
_PLACEHOLDERS = frozenset(("n/a", "na", "n.a.", "none", "null", "nil", "unknown", "deleted", "0"))


def normalise(kind: str, value: str) -> str:
    """The one spelling under which an identifier is hashed: case and Unicode form, for phones no separators.

    The Unicode form of what is longer than an identifier stays: sorting very many accents on one letter
    takes the square of their number.
    """
    if len(value) <= LONGEST:
        value = unicodedata.normalize("NFKC", value)
    value = value.strip().casefold()
    return re.sub(r"[\s()./-]", "", value) if kind == "phone" else value


def is_placeholder(value: str) -> bool:
    """Whether a value says nothing about who has it: blank, only punctuation, or a word such as "n/a"."""
    value = value.strip().casefold()
    return value in _PLACEHOLDERS or not any(char.isalnum() for char in value)


def add_identifiers(
    session: Session, keyring: Keyring, request_id: UUID, identifiers: Mapping[str, str]
) -> None:
    """Store keyed hashes of the person's identifiers."""
    keys = {
        kind: keyring.fingerprint(normalise(kind, value), purpose=f"identifier:{kind}")
        for kind, value in identifiers.items()
    }
    rows = [
        {"request_id": request_id, "kind": kind, "key_id": key.key_id, "hmac": key.hmac}
        for kind, key in keys.items()
    ]
    insert_rows(session, Identifier, rows)


def find_requests(session: Session, keyring: Keyring, kind: str, value: str) -> list[UUID]:
    """The requests of whoever has this identifier, newest first, whichever key they were hashed with."""
    found = session.scalars(
        select(Request.id)
        .where(Request.id.in_(identifier_matches(keyring, kind, value)))
        .order_by(Request.received_at.desc(), Request.id.desc())
    )
    return list(found)


def identifier_matches(keyring: Keyring, kind: str, value: str) -> Select[UUID]:
    """Selects the ids of the requests that have recorded this identifier, under any key of the ring."""
    keys = keyring.fingerprints(normalise(kind, value), purpose=f"identifier:{kind}")
    return select(Identifier.request_id).where(
        Identifier.kind == kind, Identifier.hmac.in_([key.hmac for key in keys])
    )
