"""A person in an address: by the keyed hash that the trail has, never by what identifies them elsewhere."""

from __future__ import annotations

import re

from effaced.core.errors import Problem, Refused
from effaced.model import SubjectKey

_KEY = re.compile(r"([A-Za-z0-9_-]{1,16})\.([0-9a-f]{64})")


def write_subject_key(key: SubjectKey) -> str:
    return f"{key.key_id}.{key.hmac}"


def parse_subject_key(text: str) -> SubjectKey | None:
    """The key; None if it can't be one. In a path that is 404, as for one that nobody has."""
    found = _KEY.fullmatch(text)
    return SubjectKey(found[1], found[2]) if found else None


def read_subject_key(text: str | None) -> SubjectKey | None:
    """The key that the query has as `subject_key`, if any; refuses what is none."""
    if text is None:
        return None
    key = parse_subject_key(text)
    if key is None:
        said = "must be the `key` of a subject"
        problem = Problem("subject_key", said, code="malformed")
        raise Refused("The subject key is malformed.", problems=[problem])
    return key
