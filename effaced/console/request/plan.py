"""What executing a request would do now: rows of your database, and systems to call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from effaced.console.current import runtime
from effaced.core.errors import ConfigurationError, NotFound, Refused, Unavailable
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.erase import TableEffect, count_kept_rows, dry_run
from effaced.datamap.run.rectify import ColumnEffect, preview_corrections
from effaced.datamap.run.samples import Row, sample
from effaced.datamap.run.subject import find_subject
from effaced.model import RequestKind
from effaced.requests.subject import open_corrections, open_subject
from effaced.requests.tables import Request
from effaced.resolvers.registry import Registered
from effaced.triage.systems import split_by_reference

_CANT_EXECUTE = (
    "This request can't be executed: the data map does not fit the database, or the configuration has a "
    "mistake. Nothing is erased or corrected until that is put right."
)


@dataclass(frozen=True, slots=True)
class Kept:
    """Columns of one table that stay for the same reason."""

    columns: tuple[str, ...]
    basis: str
    until: str | None


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One table: what happens, in how many rows something is kept (None: not counted), a few rows, masked."""

    effect: TableEffect
    rows_kept: int | None
    samples: tuple[Row, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing of the person is there."""
        return not self.effect.rows and not self.kept

    @property
    def kept(self) -> list[Kept]:
        reasons: dict[tuple[str, str | None], list[str]] = {}
        for each in self.effect.retained if self.rows_kept != 0 else ():
            reasons.setdefault((each.basis, each.until), []).append(each.column)
        return [Kept(tuple(columns), *reason) for reason, columns in reasons.items()]


@dataclass(frozen=True, slots=True)
class Plan:
    """What executing would do now, by the map with this hash; or why that can't be said.

    `not_concerned` know the person but hold nothing of what is corrected; `unable` do, and can't correct it.
    """

    datamap_hash: str = ""
    lines: tuple[PlanLine, ...] = ()
    sampled: bool = False
    corrections: tuple[ColumnEffect, ...] = ()
    calls: tuple[str, ...] = ()
    unknown_to: tuple[str, ...] = ()
    not_concerned: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()
    problem: str | None = None
    details: tuple[str, ...] = ()
    """What the problem consists of, where that is known."""

    @property
    def rows(self) -> int:
        return sum(line.effect.changed for line in self.lines) + sum(each.rows for each in self.corrections)

    @property
    def tables(self) -> int:
        changed = {line.effect.table for line in self.lines if line.effect.changed}
        return len(changed) + sum(1 for each in self.corrections if each.rows)


def plan_of(session: Session, request: Request, *, with_samples: bool = False) -> Plan:
    """A dry run: what an execution would do, counted now. Changes nothing."""
    try:
        return _plan(session, request, with_samples=with_samples)
    except (NotFound, Unavailable, Refused) as error:
        return Plan(problem=error.message)
    except ConfigurationError as error:
        return Plan(problem=_CANT_EXECUTE, details=tuple(each.message for each in error.problems))


def _plan(session: Session, request: Request, *, with_samples: bool) -> Plan:
    here = runtime()
    subject_id = open_subject(here.keyring, request)
    if subject_id is None:
        return Plan(problem="The request no longer knows whom it is about.")
    erasure = here.plan_on(session).for_people(request.subject_type)
    subject = find_subject(session, erasure, subject_id)
    known, strangers = split_by_reference(here.registry, subject.refs if subject else {})
    plan = Plan(here.datamap.hash, calls=_names(known), unknown_to=_names(strangers))
    if request.kind is RequestKind.ERASURE:
        lines = _lines(session, erasure, subject_id, with_samples=with_samples)
        return replace(plan, lines=lines, sampled=with_samples)
    corrections = open_corrections(here.keyring, request)
    fields = {each.column for each in corrections}
    concerned = [each for each in known if each.fields is None or each.fields & fields]
    return replace(
        plan,
        corrections=tuple(preview_corrections(session, erasure, subject_id, corrections)),
        calls=_names(concerned),
        not_concerned=_names([each for each in known if each not in concerned]),
        unable=_names([each for each in concerned if not each.rectifies]),
    )


def _lines(
    session: Session, erasure: ErasurePlan, subject_id: str, *, with_samples: bool
) -> tuple[PlanLine, ...]:
    effects = dry_run(session, erasure, subject_id)
    kept = count_kept_rows(session, erasure, subject_id)
    if not with_samples:
        return tuple(map(PlanLine, effects, kept))
    samples = sample(session, erasure, subject_id, counted=[each.rows for each in effects])
    return tuple(map(PlanLine, effects, kept, map(tuple, samples)))


def _names(systems: list[Registered]) -> tuple[str, ...]:
    return tuple(each.name for each in systems)
