"""The names under which a person's values go into the plan's statements."""

from __future__ import annotations

import hashlib

from effaced.datamap.model.data_map import ColumnRule

# None may be the name of any company's column, or SQLAlchemy takes it for a value to set.
HASH_INNER = "effaced_hash_inner"
HASH_OUTER = "effaced_hash_outer"
HASH_LABEL = "effaced_hash_label"


def scrub_name(rule: ColumnRule) -> str:
    """The pattern's; columns that are scrubbed of the same share one."""
    return f"effaced_scrub_{hashlib.sha256(repr(sorted(rule.names)).encode()).hexdigest()[:12]}"
