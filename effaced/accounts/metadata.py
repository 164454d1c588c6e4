"""What an API key may attach to its requests: its own references, by names that are declared with the key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from effaced.accounts.tables import ApiKey
from effaced.core.errors import Problem, Refused

KEY_PATTERN = r"^[a-z][a-z0-9_]{0,31}$"
VALUE_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
MOST_KEYS = 10


def parse_metadata_keys(names: Iterable[str]) -> list[str]:
    """The names, each once, in one order. Refuses what is no name, and more than ten."""
    wanted = sorted(set(names))
    if len(wanted) > MOST_KEYS or not all(re.fullmatch(KEY_PATTERN, each) for each in wanted):
        said = f"must be at most {MOST_KEYS} names of lower-case letters, digits and _, such as ticket"
        raise Refused(
            f"The metadata keys {said}.", problems=[Problem("metadata_keys", said, code="malformed")]
        )
    return wanted


def require_declared(key: ApiKey, metadata: Mapping[str, str]) -> None:
    """Refuse names that the key does not declare."""
    declared = key.metadata_keys or []
    said = f"is not declared by this API key; it declares {', '.join(declared) or 'none'}"
    problems = [
        Problem(f"metadata.{name}", said, code="not_declared") for name in metadata if name not in declared
    ]
    if problems:
        raise Refused("The metadata is not what this API key declares.", problems=problems)
