"""Tries as they stand in the table, and a recount of them in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select

from effaced.core.db import Database
from effaced.model import AttemptOutcome, OutboxOperation, OutboxStatus, new_id
from effaced.outbox.tables import OutboxRow
from effaced.retries.figures import Figures
from effaced.retries.tables import Attempt, AttemptHour

HOUR = timedelta(hours=1)
COLUMNS = [each.name for each in AttemptHour.__table__.c if each.name != "computed_at"]


@dataclass(frozen=True)
class Try:
    """One try; what is not named is as in most of them."""

    at: datetime
    resolver: str = "crm"
    outcome: AttemptOutcome = AttemptOutcome.SUCCESS
    number: int = 1
    entry_id: UUID | None = None
    request_id: UUID | None = None
    latency_ms: int = 20
    status_code: int | None = None
    error: str | None = None
    first: bool = True
    delay_before_ms: int | None = 15
    retry_after_s: int | None = None
    trial: bool = False

    def row(self) -> dict[str, Any]:
        return {
            **vars(self),
            "entry_id": self.entry_id or new_id(),
            "request_id": self.request_id or new_id(),
            "operation": OutboxOperation.ERASE,
        }


def write(database: Database, tries: Iterable[Try]) -> None:
    if rows := [each.row() for each in tries]:
        with database.begin() as session:
            session.execute(insert(Attempt), rows)


def ended_entry(database: Database, at: datetime, status: OutboxStatus = OutboxStatus.SUCCEEDED) -> UUID:
    """An entry that ended then; one that is still open if the status says so."""
    entry_id = new_id()
    terminal = status in (OutboxStatus.SUCCEEDED, OutboxStatus.ABANDONED)
    with database.begin() as session:
        session.add(
            OutboxRow(
                entry_id=entry_id,
                request_id=new_id(),
                operation=OutboxOperation.ERASE,
                resolver="crm",
                subject_key_id="k",
                subject_hmac="0" * 64,
                ref_kind="crm",
                status=status,
                enqueued_at=at,
                aging_since=at,
                ended_at=at if terminal else None,
            )
        )
    return entry_id


def hours(database: Database) -> dict[tuple[datetime, str], dict[str, Any]]:
    """The aggregates, without when they were made."""
    with database.read() as session:
        rows = session.scalars(select(AttemptHour)).all()
    return {(row.hour, row.resolver): {name: getattr(row, name) for name in COLUMNS} for row in rows}


def recounted(tries: Sequence[dict[str, Any]]) -> Figures:
    """What these rows come to, one by one."""
    figures = Figures(
        attempts=len(tries),
        entries=len({each["entry_id"] for each in tries}),
        requests=len({each["request_id"] for each in tries}),
        retries=sum(each["number"] > 1 or not each["first"] for each in tries),
    )
    for each in tries:
        outcome = each["outcome"]
        figures.outcomes[outcome.value] += 1
        if outcome is AttemptOutcome.SUCCESS:
            figures.success_by_attempt[each["number"]] += 1
        elif outcome is not AttemptOutcome.SCHEDULED:
            status = each["status_code"]
            figures.failure_by_reason[f"http_{status}" if status else each["error"] or outcome.value] += 1
        if outcome is not AttemptOutcome.CIRCUIT_OPEN:
            figures.latency.observe(each["latency_ms"])
        if each["first"] and each["delay_before_ms"] is not None:
            figures.wait.observe(each["delay_before_ms"])
    return figures
