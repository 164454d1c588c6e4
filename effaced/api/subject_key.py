"""A person in an address: by the keyed hash that the trail has, never by what identifies them elsewhere."""

from __future__ import annotations

import re

from effaced.core.errors import Problem, Refused
from effaced.model import SubjectKey

_KEY = re.compile(r"([A-Za-z0-9_-]{1,16})\.([0-9a-f]{64})")


def write_subject_key(key: SubjectKey) -> str:
    return f"{key.key_id}.{key.hmac}"


def read_subject_key(text: str | None) -> SubjectKey | None:
    """The key; refuses what is none."""
    if text is None:
        return None
    found = _KEY.fullmatch(text)
    if found is None:
        said = "must be the `key` of a subject"
        problem = Problem("subject_key", said, code="malformed")
        raise Refused("The subject key is malformed.", problems=[problem])
    return SubjectKey(found[1], found[2])
