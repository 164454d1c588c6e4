"""Policies changed at run time: for everything, for a resolver, a host or a request; audited, and undone.

What is kept is the fields that somebody has changed. Every process reads them when it needs them, so a
change holds everywhere at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, false, insert, or_, select, update
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import PolicyChanged, PolicyField, PolicyUndone
from effaced.audit.notes import NoteRef, note_fields
from effaced.core import clock
from effaced.core.db import is_postgres
from effaced.core.errors import Conflict, Problem, Refused
from effaced.model import PolicyKind, PolicyScope, SubjectKey
from effaced.retries.policy import OPERATORS_ONLY
from effaced.retries.tables import policies

ALL = "*"
MOST_PER_SECOND = 100_000
# Takes the changed fields and returns them as they are to be kept; refuses what is wrong, by field.
Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]
# Takes what is overridden already and the changes, and returns what is to be kept.
Merge = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
Bodies = Mapping[tuple[PolicyScope, str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Target:
    """What an override applies to: a resolver or host by name, a request by id, everything as `*`.

    `subject` is the person of that request; it stands in the events.
    """

    kind: PolicyKind
    scope: PolicyScope = PolicyScope.GLOBAL
    key: str = ALL
    subject: SubjectKey | None = field(default=None, compare=False)

    @property
    def request_id(self) -> UUID | None:
        return UUID(self.key) if self.scope is PolicyScope.REQUEST else None

    def row(self) -> ColumnElement[bool]:
        return and_(policies.c.kind == self.kind, policies.c.scope == self.scope, policies.c.key == self.key)


@dataclass(frozen=True, slots=True)
class Override:
    """The fields that differ, who changed them last, and what `undo` would go back to."""

    target: Target
    body: Mapping[str, Any]
    previous: Mapping[str, Any] | None
    version: int
    changed_at: datetime
    changed_by: str
    note_id: UUID | None = None


def beside(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """For `merge`: what was overridden before and is not named stays overridden."""
    return {**before, **changes}


def set_override(
    session: Session,
    target: Target,
    changes: Mapping[str, Any],
    *,
    check: Check,
    actor: str,
    note: NoteRef | None = None,
    merge: Merge | None = None,
) -> Override:
    """Override exactly these fields, or what `merge` makes of those overridden already and these.

    No fields at all removes the override. Setting what is in force already is no change, and no event.
    """
    checked = dict(check(changes))
    current = _lock(session, target)
    body = dict(check(merge(current.body, checked))) if merge and current else checked
    if (current and body == current.body) or (not current and not body):
        return current or _no_override(target)
    return _write(session, target, current, body, PolicyChanged, actor, note)


def set_override_as_sender(
    session: Session,
    target: Target,
    changes: Mapping[str, Any],
    *,
    check: Check,
    actor: str,
    note: NoteRef | None = None,
) -> Override:
    """`set_override` for a sender of requests: fields that only an operator may set stay as they are."""
    current = _lock(session, target)
    kept = {name: current.body[name] for name in OPERATORS_ONLY if current and name in current.body}
    mine = {name: value for name, value in changes.items() if name not in OPERATORS_ONLY}
    return set_override(session, target, {**mine, **kept}, check=check, actor=actor, note=note)


def undo_override(
    session: Session,
    target: Target,
    *,
    actor: str,
    note: NoteRef | None = None,
) -> Override:
    """Return to what was in force before the last change. Undoing twice restores the change."""
    current = _lock(session, target)
    if current is None or current.previous is None:
        raise Conflict("Nothing was changed here that could be undone.")
    return _write(session, target, current, dict(current.previous), PolicyUndone, actor, note)


def get_override(session: Session, target: Target) -> Override | None:
    """The override, if there has ever been one; its body is empty after it was removed."""
    row = session.execute(select(policies).where(target.row())).first()
    return _override(row) if row else None


def list_overrides(session: Session, *kinds: PolicyKind) -> list[Override]:
    """All overrides of these kinds that are in force, except those of single requests."""
    query = select(policies).where(
        policies.c.kind.in_(kinds), policies.c.scope != PolicyScope.REQUEST
    )  # of those there may be very many
    found = session.execute(query.order_by(policies.c.kind, policies.c.scope, policies.c.key))
    return [override for row in found if (override := _override(row)).body]


def read_bodies(
    session: Session,
    kind: PolicyKind,
    *,
    resolvers: Collection[str] = (),
    hosts: Collection[str] = (),
    requests: Collection[UUID] = (),
) -> Bodies:
    """The overridden fields of any of these, and those for everything: one statement."""
    named = {
        PolicyScope.GLOBAL: [ALL],
        PolicyScope.RESOLVER: sorted(resolvers),
        PolicyScope.HOST: sorted(hosts),
        PolicyScope.REQUEST: sorted(str(each) for each in requests),
    }
    any_of = [
        and_(policies.c.scope == scope, policies.c.key.in_(keys)) for scope, keys in named.items() if keys
    ]
    query = select(policies.c.scope, policies.c.key, policies.c.body)
    query = query.where(policies.c.kind == kind, or_(false(), *any_of))
    return {(row.scope, row.key): row.body for row in session.execute(query)}


def check_rate(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Check the override of a rate limit, which has one field."""
    problems = [
        Problem(name, "is not a known field", code="unknown_field")
        for name in changes
        if name != "rate_per_second"
    ]
    rate = changes.get("rate_per_second", 1)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= MOST_PER_SECOND:
        said = f"must be a number above 0 and at most {MOST_PER_SECOND}"
        problems.append(Problem("rate_per_second", said, code="out_of_range"))
    if problems:
        raise Refused("The rate limit is invalid.", problems=problems)
    return dict(changes)


def rate_in_force(own: float | None, configured: float | None, common: float | None) -> float | None:
    """Calls per second: changed for this resolver, else in its file, else changed for all resolvers."""
    return own or configured or common


def _lock(session: Session, target: Target) -> Override | None:
    query = select(policies).where(target.row()).with_for_update()
    row = session.execute(query).first()
    return _override(row) if row else None


def _write(
    session: Session,
    target: Target,
    current: Override | None,
    body: dict[str, Any],
    event: type[PolicyChanged],
    actor: str,
    note: NoteRef | None,
) -> Override:
    before = dict(current.body) if current else {}
    new = Override(
        target,
        body,
        before,
        current.version + 1 if current else 1,
        clock.now(),
        actor,
        note.note_id if note else None,
    )
    values = {
        "body": new.body,
        "previous": new.previous,
        "version": new.version,
        "changed_at": new.changed_at,
        "changed_by": new.changed_by,
        "note_id": new.note_id,
    }
    if current:
        session.execute(update(policies).where(target.row()).values(values))
    else:
        _insert(session, target, values)
    written = event(
        kind=target.kind,
        scope=target.scope,
        key=target.key,
        version=new.version,
        fields=_changed_fields(_flat(before), _flat(body)),
        **note_fields(note),
    )
    append_one(session, written, actor=actor, request_id=target.request_id, subject=target.subject)
    return new


def _insert(session: Session, target: Target, values: Mapping[str, Any]) -> None:
    row = {"kind": target.kind, "scope": target.scope, "key": target.key, **values}
    if not is_postgres(session):
        session.execute(insert(policies).values(row))
        return
    from sqlalchemy.dialects.postgresql import insert as insert_or_leave

    made = session.execute(
        insert_or_leave(policies).values(row).on_conflict_do_nothing().returning(policies.c.version)
    )
    if made.first() is None:
        raise Conflict("Somebody else has changed this policy at the same moment. Look at it, and try again.")


def _flat(body: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields by dotted name, such as `rolling.enabled`."""
    found: dict[str, Any] = {}
    for name, value in body.items():
        nested = isinstance(value, Mapping)
        found |= _flat(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return found


def _changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[PolicyField, ...]:
    return tuple(_field(name, before, after) for name in sorted(before.keys() | after.keys()))


def _field(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> PolicyField:
    return PolicyField(field=name, was=_as_words(before.get(name)), now=_as_words(after.get(name)))


def _as_words(value: Any) -> tuple[str, ...] | None:
    """A value as the audit trail accepts it: a tuple of words and numbers."""
    if value is None:
        return None
    values = value if isinstance(value, list | tuple) else [value]
    return tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in values)


def _no_override(target: Target) -> Override:
    return Override(target, {}, None, 0, clock.now(), "")


def _override(row: Any) -> Override:
    target = Target(row.kind, row.scope, row.key)
    return Override(target, row.body, row.previous, row.version, row.changed_at, row.changed_by, row.note_id)
