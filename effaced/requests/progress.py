"""Progress of an execution that changes very many rows in batches."""

from __future__ import annotations

from dataclasses import dataclass

from effaced.model import RequestStatus
from effaced.requests.tables import Request


@dataclass(frozen=True, slots=True)
class TableProgress:
    """Rows done and all rows of one table; `label` says so if they are only detached from the person."""

    label: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far all tables together have come."""

    tables: tuple[TableProgress, ...]

    @property
    def done(self) -> int:
        return sum(each.done for each in self.tables)

    @property
    def total(self) -> int:
        return sum(each.total for each in self.tables)


def progress_of(request: Request) -> BatchProgress | None:
    """How far the batches of a request have come; None unless an erasure in batches is under way."""
    if not request.batch_counts or request.status is not RequestStatus.APPROVED:
        return None
    return BatchProgress(
        tuple(TableProgress(label, *counts) for label, counts in request.batch_counts.items())
    )
