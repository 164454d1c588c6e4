"""Correcting a person in the company's database, and the calls that other systems get for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from effaced.audit.events import LocalColumnCorrected, LocalRectificationExecuted
from effaced.core.crypto import Keyring
from effaced.core.errors import Unavailable
from effaced.datamap.run.rectify import ColumnEffect, rectify
from effaced.datamap.run.subject import Subject, find_subject
from effaced.model import Correction, OutboxOperation, SubjectRef
from effaced.outbox.enqueue import Call
from effaced.outbox.supersede import Superseded, supersede_corrections
from effaced.requests.correct import certain_refs, corrections_for, superseded_fields
from effaced.requests.execution.change import Execution, LocalChange, distinct_refs
from effaced.requests.identity import confirm_row, other_requests_of
from effaced.requests.subject import open_corrections
from effaced.resolvers.registry import Registered, ResolverRegistry


def rectify_locally(
    session: Session, keyring: Keyring, registry: ResolverRegistry, execution: Execution
) -> LocalChange:
    """Correct the person's rows, and supersede their older corrections of the same fields."""
    request, person, data_map = execution.request, execution.person, execution.plan.data_map
    if person.subject is None:
        raise Unavailable("The person is no longer in your database.")
    refs = person.subject.refs
    corrections = open_corrections(keyring, request)
    effects = _rectify_and_confirm(session, keyring, execution, person.subject, corrections)
    superseded = supersede_corrections(
        session,
        keyring,
        person.keys,
        by=request.id,
        fields=superseded_fields(data_map, corrections),
        known_as=certain_refs(data_map, registry, refs, corrections),
    )
    known = [each for each in registry if each.ref in refs]
    calls = [
        Call(each.name, ref, theirs, each.after)
        for each in known
        if (
            theirs := (
                *superseded.carried.get(each.name, ()),
                *corrections_for(data_map, each, corrections),
            )
        )
        for ref in _refs_to_correct(superseded, each, refs)
    ]
    called = {call.resolver for call in calls}
    executed = LocalRectificationExecuted(
        datamap_hash=data_map.hash,
        fields=tuple(each.column for each in corrections),
        tables=tuple(
            LocalColumnCorrected(table=each.table, columns=each.columns, rows=each.rows) for each in effects
        ),
        external_calls=len(calls),
        without_reference=tuple(each.name for each in registry if each not in known),
        not_concerned=tuple(each.name for each in known if each.name not in called),
    )
    return LocalChange(OutboxOperation.RECTIFY, (executed,), calls, superseded)


def _rectify_and_confirm(
    session: Session,
    keyring: Keyring,
    execution: Execution,
    subject: Subject,
    corrections: Sequence[Correction],
) -> list[ColumnEffect]:
    """Correct the rows. Other requests of the person are confirmed to be about the corrected row.

    What was corrected may be what those requests know the person by; it is the same row.
    """
    plan, subject_id = execution.plan, execution.sealed.subject_id
    others = other_requests_of(session, keyring, plan, execution.person.keys, subject)
    effects = rectify(session, plan, subject_id, corrections)
    corrected = find_subject(session, plan, subject_id) if others else None
    if corrected is not None:
        for other in others:
            confirm_row(session, keyring, other, corrected, by=execution.request.id)
    return effects


def _refs_to_correct(superseded: Superseded, system: Registered, refs: Mapping[str, str]) -> list[SubjectRef]:
    """The references by which a system that has to correct something may know the person.

    Where an older correction has not arrived, that is the reference from before it; where nobody can tell
    whether it has, it is both. A system that can't correct is called once, and only says so.
    """
    former = superseded.refs.get(system.name, [])
    if former and not (system.rectifies and system.name in superseded.tried):
        return former[:1]
    return distinct_refs(former, system.ref, refs)
