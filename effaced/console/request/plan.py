"""The plan of a request, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlalchemy.orm import Session

from effaced.console.current import runtime
from effaced.core.errors import ConfigurationError, Conflict, NotFound, Refused, Unavailable
from effaced.requests.plan import RequestPlan, plan_request
from effaced.requests.tables import Request

_CANT_EXECUTE = (
    "This request can't be executed: the data map does not fit the database, or the configuration has a "
    "mistake. Nothing is erased or corrected until that is put right."
)


@dataclass(frozen=True, slots=True)
class Plan(RequestPlan):
    """What executing would do now; or why that can't be said."""

    sampled: bool = False
    problem: str | None = None
    details: tuple[str, ...] = ()
    """What the problem consists of, where that is known."""


def plan_of(session: Session, request: Request, *, with_samples: bool = False) -> Plan:
    """A dry run: what an execution would do, counted now. Changes nothing."""
    here = runtime()
    try:
        erasure = here.plan_on(session)
        found = plan_request(
            session, here.keyring, erasure, here.registry, request, with_samples=with_samples
        )
    except (NotFound, Unavailable, Refused, Conflict) as error:
        return Plan(problem=error.message)
    except ConfigurationError as error:
        return Plan(problem=_CANT_EXECUTE, details=tuple(each.message for each in error.problems))
    same = {each.name: getattr(found, each.name) for each in fields(RequestPlan)}
    return Plan(**same, sampled=with_samples and bool(found.lines))
