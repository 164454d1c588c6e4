"""What executing a request would do now: rows of the own database, and systems to call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from effaced.console.current import runtime
from effaced.datamap.erase import TableEffect, dry_run
from effaced.datamap.rectify import ColumnEffect, foresee
from effaced.datamap.subject import find_subject
from effaced.errors import ConfigurationError, NotFound, Refused, Unavailable
from effaced.model import RequestKind
from effaced.requests.subject import open_corrections, open_subject
from effaced.requests.systems import knowing
from effaced.requests.tables import Request
from effaced.resolvers.registry import Registered


@dataclass(frozen=True, slots=True)
class Kept:
    """Columns of one table that stay for the same reason."""

    columns: tuple[str, ...]
    basis: str
    until: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What executing would do now; or why that can't be said.

    `not_concerned` know the person but hold nothing of what is corrected; `unable` do, and can't correct it.
    """

    effects: tuple[TableEffect, ...] = ()
    corrections: tuple[ColumnEffect, ...] = ()
    calls: tuple[str, ...] = ()
    unknown_to: tuple[str, ...] = ()
    not_concerned: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()
    problem: str | None = None

    @staticmethod
    def kept(effect: TableEffect) -> list[Kept]:
        reasons: dict[tuple[str, str | None], list[str]] = {}
        for each in effect.retained:
            reasons.setdefault((each.basis, each.until), []).append(each.column)
        return [Kept(tuple(columns), *reason) for reason, columns in reasons.items()]

    @property
    def rows(self) -> int:
        return sum(effect.changed for effect in self.effects) + sum(each.rows for each in self.corrections)

    @property
    def tables(self) -> int:
        changed = {effect.table for effect in self.effects if effect.changed}
        return len(changed) + sum(1 for each in self.corrections if each.rows)


def plan_of(session: Session, request: Request) -> Plan:
    """Counted just now; nothing is changed by looking."""
    try:
        return _plan(session, request)
    except (NotFound, Unavailable, Refused) as error:
        return Plan(problem=error.message)
    except ConfigurationError:
        return Plan(problem="The data map or the resolver file can't be used right now; the log says why.")


def _plan(session: Session, request: Request) -> Plan:
    here = runtime()
    subject_id = open_subject(here.keyring, request)
    if subject_id is None:
        return Plan(problem="The request no longer knows whom it is about.")
    erasure = here.plan.named(request.subject_type)
    subject = find_subject(session, erasure, subject_id)
    known, strangers = knowing(here.registry, subject.refs if subject else {})
    plan = Plan(calls=_names(known), unknown_to=_names(strangers))
    if request.kind is RequestKind.ERASURE:
        return replace(plan, effects=tuple(dry_run(session, erasure, subject_id)))
    corrections = open_corrections(here.keyring, request)
    fields = {each.column for each in corrections}
    concerned = [each for each in known if each.fields is None or each.fields & fields]
    return replace(
        plan,
        corrections=tuple(foresee(session, erasure, subject_id, corrections)),
        calls=_names(concerned),
        not_concerned=_names([each for each in known if each not in concerned]),
        unable=_names([each for each in concerned if not each.rectifies]),
    )


def _names(systems: list[Registered]) -> tuple[str, ...]:
    return tuple(each.name for each in systems)
