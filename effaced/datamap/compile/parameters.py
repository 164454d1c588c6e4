"""The names of the parameters for a person's values in the plan's statements."""

from __future__ import annotations

import hashlib

from effaced.datamap.model.data_map import ColumnRule

# None may be the name of any company's column, or SQLAlchemy takes it for a value to set.
HASH_INNER = "effaced_hash_inner"
HASH_OUTER = "effaced_hash_outer"
HASH_LABEL = "effaced_hash_label"


def scrub_name(rule: ColumnRule) -> str:
    """The parameter for the pattern; columns scrubbed of the same names share one."""
    return f"effaced_scrub_{hashlib.sha256(repr(sorted(rule.names)).encode()).hexdigest()[:12]}"
