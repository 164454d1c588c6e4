"""What is done in another database, by its own data map: each in one transaction, and blocking.

The plan is made when first needed and kept while the schema stays the same, which every call asks in its
own transaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, cast, exists, func, literal, select, types
from sqlalchemy.orm import Session

from effaced.core.errors import ConfigurationError, Problem
from effaced.datamap.compile.key import join_id
from effaced.datamap.model.data_map import Action, DataMap, SubjectRule
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure
from effaced.datamap.run.erase import TableEffect, count_reachable, erase_and_verify
from effaced.datamap.run.rectify import rectify
from effaced.datamap.run.subject import find_subject
from effaced.datamap.schema.fingerprint import SchemaChanged, require_schema
from effaced.datamap.surrogates.shapes import Hashing
from effaced.model import Correction, OutboxOperation
from effaced.resolvers.protocols import AlreadyAbsent, Answer, Erased, Rectified, Rejected, Retained
from effaced.resolvers.sql import ledger
from effaced.resolvers.sql.config import SqlConfig
from effaced.resolvers.sql.database import OtherDatabase, Span
from effaced.resolvers.sql.errors import may_be_stale_plan

_LONGEST_BASIS = 64
T = TypeVar("T")


class Work:
    """Erases, corrects and looks. The database is given with each call; what is kept is the plan."""

    def __init__(
        self, config: SqlConfig, data_map: DataMap, kind: SubjectRule, hashing: Hashing | None
    ) -> None:
        self._config = config
        self._map = data_map
        self._hashing = hashing
        self._people = kind.name
        self.fields = frozenset(data_map.for_people(kind.name).rectify)
        self._planning = Lock()
        self._plan: ErasurePlan | None = None
        self._has_ledger = False

    def erase(self, db: OtherDatabase, span: Span, value: str, key: UUID) -> Answer:
        def act(session: Session, plan: ErasurePlan) -> ledger.Done:
            effects: list[TableEffect] = []
            found = self._find(session, plan, value)
            if not found:  # what finds people goes by the schema too
                require_schema(session, plan.fingerprint)
            for subject_id in found:
                erased = erase_and_verify(session, plan, subject_id)
                if erased.left:
                    raise Rejected("The database kept rows that it was told to change.", code="still_there")
                effects += erased.effects
            return _outcome(session, plan, found, effects)

        answer = self._once(db, span, key, OutboxOperation.ERASE, act)
        assert not isinstance(answer, Rectified)
        return answer

    def rectify(
        self, db: OtherDatabase, span: Span, value: str, corrections: Sequence[Correction], key: UUID
    ) -> Rectified | AlreadyAbsent:
        for each in corrections:
            if each.column not in self.fields:
                said = f"The map of the database has no category '{each.column}' under rectify."
                raise Rejected(said, code="cannot_rectify")

        def act(session: Session, plan: ErasurePlan) -> ledger.Done:
            found = [each for each in self._find(session, plan, value) if _is_there(session, plan, each)]
            if not found:
                require_schema(session, plan.fingerprint)
            rows = sum(effect.rows for each in found for effect in rectify(session, plan, each, corrections))
            return ledger.Done(Rectified() if found else AlreadyAbsent(), rows)

        answer = self._once(db, span, key, OutboxOperation.RECTIFY, act)
        assert isinstance(answer, Rectified | AlreadyAbsent)
        return answer

    def is_absent(self, db: OtherDatabase, span: Span, value: str, key: UUID) -> bool:
        """Whether nothing is there that erasing would change.

        If something is, the ledger's word that it was done is taken back, so that whoever requeues the
        entry has it done again.
        """

        def look(plan: ErasurePlan) -> tuple[bool, bool]:
            with db.read(span) as session:
                impossible = self._config.find_by is None and plan.key.values(value) is None
                found = [] if impossible else self._find(session, plan, value)
                absent = not any(count_reachable(session, plan, each) for each in found)
                require_schema(session, plan.fingerprint)
                return absent, not absent and self._config.ledger and ledger.has(session, key)

        absent, refuted = self._with_plan(db, span, look)
        if refuted:
            with db.begin(span) as session:
                ledger.forget(session, key)
        return absent

    def find_problems(self, db: OtherDatabase, span: Span) -> list[Problem]:
        """All that stands against erasing there."""
        problems: list[Problem] = []
        with db.read(span) as session:
            try:
                self._make_plan(session)
            except ConfigurationError as error:
                problems += error.problems or [Problem("map", error.message)]
            if self._config.ledger and not ledger.may_be_made(session):
                said = f"the table {ledger.NAME} is missing and we may not make it"
                problems.append(Problem("ledger", said))
        return problems

    # --- one transaction, once ---

    def _once(
        self,
        db: OtherDatabase,
        span: Span,
        key: UUID,
        operation: OutboxOperation,
        act: Callable[[Session, ErasurePlan], ledger.Done],
    ) -> ledger.Answered:
        def attempt(plan: ErasurePlan) -> ledger.Answered:
            self._ensure_ledger(db, span)
            with db.begin(span) as session:
                if not self._config.ledger:
                    return act(session, plan).answer
                done = ledger.begin(session, key, operation)
                if done is None:
                    done = act(session, plan)
                    ledger.end(session, key, done)
                return done.answer

        return self._with_plan(db, span, attempt)

    def _with_plan(self, db: OtherDatabase, span: Span, attempt: Callable[[ErasurePlan], T]) -> T:
        plan = self._plan
        if plan is not None:
            try:
                return attempt(plan)
            except Exception as error:
                if not isinstance(error, SchemaChanged) and not may_be_stale_plan(error):
                    raise
        return attempt(self._plan_anew(db, span, plan))

    def _plan_anew(self, db: OtherDatabase, span: Span, old: ErasurePlan | None) -> ErasurePlan:
        with self._planning:
            if self._plan is not None and self._plan is not old:
                return self._plan  # somebody else was faster
            self._plan, self._has_ledger = None, False
            with db.read(span) as session:
                self._plan = plan = self._make_plan(session)
            return plan

    def _make_plan(self, session: Session) -> ErasurePlan:
        return plan_erasure(session.connection(), self._map, hashing=self._hashing).for_people(self._people)

    def _ensure_ledger(self, db: OtherDatabase, span: Span) -> None:
        if self._config.ledger and not self._has_ledger:
            with db.begin(span) as session:
                ledger.make(session)
            self._has_ledger = True

    # --- whom it is about ---

    def _find(self, session: Session, plan: ErasurePlan, value: str) -> list[str]:
        """The ids of the people a reference names. Several are refused unless the file says otherwise."""
        if self._config.find_by is None:
            plan.key.require(value)
            return [value]
        if not _is_storable_text(value):
            return []
        names = {rule.kind: rule.column for rule in plan.data_map.identifiers}
        cell: ColumnElement[Any] = plan.subject.c[names[self._config.find_by]]
        if not isinstance(cell.type, types.String):
            cell = cast(cell, types.String)
        said: ColumnElement[Any] = literal(value, cell.type)
        same = func.lower(cell) == func.lower(said) if self._config.ignore_case else cell == said
        key = [plan.subject.c[name] for name in plan.data_map.key]
        found = [join_id(row) for row in session.execute(select(*key).where(same).order_by(*key))]
        if len(found) > 1 and self._config.several == "refuse":
            raise Rejected("The reference names several people.", code="several_people")
        return found


def _is_storable_text(value: str) -> bool:
    """Whether a database takes it as a text: without NUL and without halves of characters."""
    return "\0" not in value and not any(0xD800 <= ord(letter) <= 0xDFFF for letter in value)


def _is_there(session: Session, plan: ErasurePlan, subject_id: str) -> bool:
    """Whether there is somebody to correct: a row from which the person was erased is nobody."""
    if find_subject(session, plan, subject_id) is None:
        return False
    subject = plan.data_map.subject
    stays = plan.data_map.tables[subject].action in (Action.ANONYMISED, Action.PSEUDONYMISED)
    return not stays or subject in count_reachable(session, plan, subject_id)


def _outcome(
    session: Session, plan: ErasurePlan, found: Sequence[str], effects: Sequence[TableEffect]
) -> ledger.Done:
    """Erased if anything changed; else retained if something stays on a basis; else there was nothing.

    What became a keyed hash is still personal data, and is said to stay.
    """
    changed = sum(effect.changed for effect in effects)
    staying = {step.name: {each.basis for each in step.retained} for step in plan.steps if step.retained}
    for step in plan.steps:
        if step.action is Action.PSEUDONYMISED:
            staying.setdefault(step.name, set()).add(step.action)
    kept = {
        basis
        for table, bases in staying.items()
        if any(_has_rows(session, plan, table, subject_id) for subject_id in found)
        for basis in bases
    }
    basis = _code(kept) if kept else None
    if changed:
        return ledger.Done(Erased(retained=basis), changed)
    return ledger.Done(AlreadyAbsent() if basis is None else Retained(basis))


def _has_rows(session: Session, plan: ErasurePlan, table: str, subject_id: str) -> bool:
    there = exists().select_from(plan.schema.table(table)).where(plan.rows_of_person(table))
    return bool(session.execute(select(there), plan.key.require(subject_id)).scalar_one())


def _code(bases: set[str]) -> str:
    """The bases as one short code: `tax_law:warranty`. What does not fit is at least said to be there."""
    words = sorted({re.sub(r"[^a-z0-9]+", "_", each.lower()).strip("_") or "unnamed" for each in bases})
    code = ":".join(words)
    while len(code) > _LONGEST_BASIS and len(words) > 1:
        words.pop()
        code = ":".join([*words, "and_more"])
    return code[:_LONGEST_BASIS]
