"""What executing a request works on, and what it leaves to be done in other systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from effaced.audit.events import Event
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.plan.retention import KeptRows, RetentionPlan
from effaced.model import OutboxOperation, SubjectRef
from effaced.outbox.enqueue import Call
from effaced.outbox.supersede import Superseded
from effaced.requests.execution.person import Person
from effaced.requests.subject import SealedSubject
from effaced.requests.tables import Request


@dataclass(frozen=True, slots=True)
class Execution:
    """A request that is being executed: what it knew of the person, the person now, and the plan for them."""

    request: Request
    sealed: SealedSubject
    person: Person
    retention: RetentionPlan

    @property
    def plan(self) -> ErasurePlan:
        return self.retention.plan


@dataclass(frozen=True, slots=True)
class LocalChange:
    """What was done in the company's database, and what is left to do in other systems."""

    operation: OutboxOperation
    events: tuple[Event, ...]
    calls: list[Call]
    superseded: Superseded
    kept: Sequence[KeptRows] = ()


def distinct_refs(former: Iterable[SubjectRef], kind: str, *known: Mapping[str, str]) -> list[SubjectRef]:
    """The former references and the known ones of that kind, each once."""
    of_kind = [SubjectRef(kind, refs[kind]) for refs in known if kind in refs]
    return list(dict.fromkeys([*former, *of_kind]))
