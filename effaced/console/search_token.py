"""What a subject search came to, as an opaque token: what was searched for never stands in a URL."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import Refused, Unavailable

MOST = 75  # more would make a longer URL than the console takes
VALID = timedelta(hours=12)
_PURPOSE = "subject_search"


def make_token(keyring: Keyring, ids: list[UUID], *, officer: UUID) -> str:
    """A token for this officer alone; it holds the ids of the newest requests found."""
    content = {"at": int(clock.now().timestamp()), "ids": [each.hex for each in ids[:MOST]]}
    sealed = keyring.seal(json.dumps(content).encode(), purpose=_PURPOSE, context=str(officer))
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def read_token(keyring: Keyring, token: str, *, officer: UUID) -> tuple[UUID, ...]:
    """The ids. Refuses somebody else's token, an old one and a made-up one with the same sentence."""
    try:
        sealed = base64.urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4))
        content = json.loads(keyring.open(sealed, purpose=_PURPOSE, context=str(officer)))
        fresh = clock.now() - datetime.fromtimestamp(content["at"], UTC) < VALID
    except (binascii.Error, ValueError, IndexError, Unavailable):
        fresh = False
    if not fresh:
        raise Refused("This search is no longer valid. Search again: what you looked for was not kept.")
    return tuple(UUID(each) for each in content["ids"])
