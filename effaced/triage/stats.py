"""Dead letters at a glance: how many, where, how late, and what they have in common."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from effaced.core.clock import text
from effaced.deadletters.read import DeadLetterFilter, facets, groups
from effaced.deadletters.statistics import cleanup_statistics, statistics


def dead_letter_stats(session: Session, which: DeadLetterFilter) -> dict[str, Any]:
    """Everything at once: totals of all letters; facets and groups of the filter."""
    totals = statistics(session, which.sla)
    cleanup = cleanup_statistics(session)
    found = facets(session, which)
    return {
        "total": totals["total"],
        "active": totals["active"],
        "oldest_active_at": text(totals["oldest_active_at"]),
        "by_status": totals["by_status"],
        "by_domain": totals["by_domain"],
        "sla": {
            domain: {
                "hours": threshold.total_seconds() / 3_600,
                "breached": totals["sla_breached"].get(domain, 0),
            }
            for domain, threshold in which.sla.items()
        },
        "cleanup": {name: cleanup[name] for name in cleanup if name.endswith("_days")},
        "facets": {
            "status": found.status,
            "domain": found.domain,
            "resolver": found.resolver,
            "error": found.error,
        },
        "groups": [group.plain() for group in groups(session, which, limit=100)],
    }
