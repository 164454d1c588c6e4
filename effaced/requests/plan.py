"""What executing a request would do now: rows of your database, and systems to call. Nothing is changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.errors import Conflict
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.erase import TableEffect, count_kept_rows, dry_run
from effaced.datamap.run.rectify import ColumnEffect, preview_corrections
from effaced.datamap.run.samples import Row, sample
from effaced.datamap.run.subject import find_subject
from effaced.model import Correction, RequestKind
from effaced.requests.correct import corrections_for
from effaced.requests.subject import open_corrections, unseal_subject
from effaced.requests.tables import Request
from effaced.resolvers.registry import Registered, ResolverRegistry, split_by_reference


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
class RequestPlan:
    """What executing would do now, by the map with this hash.

    `not_concerned` know the person but hold nothing of what is corrected; `unable` do, and can't correct it.
    """

    datamap_hash: str = ""
    lines: tuple[PlanLine, ...] = ()
    corrections: tuple[ColumnEffect, ...] = ()
    calls: tuple[str, ...] = ()
    unknown_to: tuple[str, ...] = ()
    not_concerned: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return sum(line.effect.changed for line in self.lines) + sum(each.rows for each in self.corrections)

    @property
    def tables(self) -> int:
        changed = {line.effect.table for line in self.lines if line.effect.changed}
        return len(changed) + sum(1 for each in self.corrections if each.rows)


def plan_request(
    session: Session,
    keyring: Keyring,
    plan: ErasurePlan,
    registry: ResolverRegistry,
    request: Request,
    *,
    with_samples: bool = False,
) -> RequestPlan:
    """What executing this request would do. Conflict once it no longer knows whom it is about."""
    sealed = unseal_subject(keyring, request)
    if sealed is None:
        raise Conflict("The request no longer knows whom it is about.")
    plan = plan.for_people(request.subject_type)
    if request.kind is RequestKind.ERASURE:
        return plan_erasure(
            session, plan, registry, sealed.subject_id, known_by=sealed.refs, with_samples=with_samples
        )
    corrections = open_corrections(keyring, request)
    return plan_rectification(session, plan, registry, sealed.subject_id, corrections)


def plan_erasure(
    session: Session,
    plan: ErasurePlan,
    registry: ResolverRegistry,
    subject_id: str,
    *,
    known_by: Collection[str] = (),
    with_samples: bool = False,
) -> RequestPlan:
    """What erasing this person would do. `plan` is that of their kind of people.

    `known_by` are the kinds of reference that the request recorded: systems are called by these too.
    """
    base, known = _systems(session, plan, registry, subject_id, known_by)
    effects = dry_run(session, plan, subject_id)
    kept = count_kept_rows(session, plan, subject_id)
    lines = tuple(map(PlanLine, effects, kept))
    if with_samples:
        rows = sample(session, plan, subject_id, counted=[each.rows for each in effects])
        lines = tuple(map(PlanLine, effects, kept, map(tuple, rows)))
    return replace(base, lines=lines, calls=_names(known))


def plan_rectification(
    session: Session,
    plan: ErasurePlan,
    registry: ResolverRegistry,
    subject_id: str,
    corrections: Sequence[Correction],
) -> RequestPlan:
    """What these corrections would change, and which systems get them."""
    base, known = _systems(session, plan, registry, subject_id)
    concerned = [each for each in known if corrections_for(plan.data_map, each, corrections)]
    return replace(
        base,
        corrections=tuple(preview_corrections(session, plan, subject_id, corrections)),
        calls=_names(concerned),
        not_concerned=_names([each for each in known if each not in concerned]),
        unable=_names([each for each in concerned if not each.rectifies]),
    )


def _systems(
    session: Session,
    plan: ErasurePlan,
    registry: ResolverRegistry,
    subject_id: str,
    known_by: Collection[str] = (),
) -> tuple[RequestPlan, list[Registered]]:
    subject = find_subject(session, plan, subject_id)
    known, strangers = split_by_reference(registry, {*known_by, *(subject.refs if subject else ())})
    return RequestPlan(plan.data_map.hash, unknown_to=_names(strangers)), known


def _names(systems: Sequence[Registered]) -> tuple[str, ...]:
    return tuple(each.name for each in systems)
