"""Erasing a person in the company's database, and the calls that other systems get for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy.orm import Session

from effaced.audit.events import (
    CellRetained,
    LocalErasureExecuted,
    LocalTableErased,
    LocalTableKept,
    LocalVerified,
    TextScrubbed,
)
from effaced.core.crypto import Keyring
from effaced.core.errors import Conflict
from effaced.datamap.model.data_map import Retained
from effaced.datamap.plan.retention import KeptRows
from effaced.datamap.run.erase import TableEffect, erase_and_verify
from effaced.model import OutboxOperation
from effaced.outbox.enqueue import Call
from effaced.outbox.supersede import Superseded, supersede_corrections
from effaced.requests.correct import supersede_open_corrections
from effaced.requests.execution.change import Execution, LocalChange, distinct_refs
from effaced.requests.identity import is_as_corrected
from effaced.resolvers.registry import ResolverRegistry


class StillReachable(Conflict):
    """The statements succeeded and the data is still there, because of a trigger or a rule there."""

    def __init__(self, tables: Iterable[str]) -> None:
        self.tables = tuple(sorted(tables))
        super().__init__(f"The database kept rows that it should have changed: {', '.join(self.tables)}.")


def erase_locally(
    session: Session, keyring: Keyring, registry: ResolverRegistry, execution: Execution
) -> LocalChange:
    """Erase the person, verify it, and supersede their corrections. StillReachable if rows are left."""
    request, person, keeps = execution.request, execution.person, list(execution.retention.tables.values())
    # Read before the erasure, since that takes the references away.
    current, former = person.subject.refs if person.subject else {}, _former_refs(session, keyring, execution)
    superseded = Superseded()
    if person.has_corrections:
        supersede_open_corrections(session, person.keys, by=request)
        superseded = supersede_corrections(session, keyring, person.keys, by=request.id)
    looks = (each.count_kept for each in keeps)
    erased = erase_and_verify(session, execution.plan, execution.sealed.subject_id, looks)
    if erased.left:
        raise StillReachable(erased.left)
    kept = {each.table: each.read_counts(row) for each, row in zip(keeps, erased.answers, strict=True)}
    calls = [
        Call(each.name, ref, after=each.after)
        for each in registry
        # Also under what a system may still know them by, where a correction has not got through.
        for ref in distinct_refs(superseded.refs.get(each.name, ()), each.ref, former, current)
    ]
    called = {call.resolver for call in calls}
    retained = _retained_cells(erased.effects, kept)
    executed = LocalErasureExecuted(
        datamap_hash=execution.plan.data_map.hash,
        tables=_tables_erased(erased.effects, request.batch_counts or {}),
        retained=retained,
        scrubbed=_texts_scrubbed(erased.effects),
        external_calls=len(calls),
        without_reference=tuple(each.name for each in registry if each.name not in called),
    )
    verified = LocalVerified(tables=len(erased.effects), kept=_tables_kept(retained))
    return LocalChange(
        OutboxOperation.ERASE, (executed, verified), calls, superseded, kept=list(kept.values())
    )


def _former_refs(session: Session, keyring: Keyring, execution: Execution) -> Mapping[str, str]:
    """The references from the intake: the row may have changed or gone since then, and a system may still
    know the person by them.

    None of them where a correction of ours has replaced one, since that may have been somebody else's.
    Systems that the correction has not reached are called by it all the same: see `Superseded.refs`.
    """
    subject, former = execution.person.subject, execution.sealed.refs
    if subject is None or all(subject.refs.get(kind) == value for kind, value in former.items()):
        return former
    return {} if is_as_corrected(session, keyring, execution.request.id, subject) else former


def _tables_erased(
    effects: Iterable[TableEffect], in_batches: Mapping[str, list[int]]
) -> tuple[LocalTableErased, ...]:
    """The rows per table, with those that were erased in batches before."""
    return tuple(
        LocalTableErased(
            table=effect.table,
            action=effect.action,
            rows=effect.rows + in_batches.get(effect.label, [0])[0],
        )
        for effect in effects
    )


def _texts_scrubbed(effects: Iterable[TableEffect]) -> tuple[TextScrubbed, ...]:
    return tuple(
        TextScrubbed(table=effect.table, column=column, rows=rows)
        for effect in effects
        for column, rows in effect.scrubbed.items()
    )


def _retained_cells(effects: Iterable[TableEffect], kept: Mapping[str, KeptRows]) -> tuple[CellRetained, ...]:
    return tuple(
        _retained_cell(effect.table, cell, kept.get(effect.table))
        for effect in effects
        for cell in effect.retained
    )


def _retained_cell(table: str, cell: Retained, kept: KeptRows | None) -> CellRetained:
    first = kept.by_rule.get(cell.until) if kept and cell.until else None
    return CellRetained(
        table=table,
        column=cell.column,
        basis=cell.basis,
        until=cell.until,
        first_due=first.isoformat() if first else None,
        rows=kept.rows if kept else None,
    )


def _tables_kept(retained: Iterable[CellRetained]) -> tuple[LocalTableKept, ...]:
    """The tables in which something is retained, each once; those where no row is left out."""
    tables = {each.table: each.rows for each in retained if each.rows != 0}
    return tuple(LocalTableKept(table=table, rows=rows) for table, rows in tables.items())
