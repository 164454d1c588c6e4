"""The person a request is about: how people and external systems know them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import select, type_coerce, types
from sqlalchemy.orm import Session

from effaced.datamap.key import as_text, join_id
from effaced.datamap.plan import ErasurePlan
from effaced.datamap.surrogates import is_surrogate


@dataclass(frozen=True, slots=True)
class Subject:
    """One person, read once. Everything here is personal data, so its repr shows nothing of it."""

    subject_id: str = field(repr=False)
    identifiers: dict[str, str] = field(repr=False)
    refs: dict[str, str] = field(repr=False)


def find_subject(session: Session, plan: ErasurePlan, subject_id: str) -> Subject | None:
    """The person with that key, or None. One SELECT.

    The `subject_id` in the answer is spelled as the database has it, so that one person always has one.
    Identifiers and refs whose columns are NULL, empty or erased already are left out.
    """
    values = plan.key.values(subject_id)
    if values is None:
        return None
    table, data_map = plan.subject, plan.data_map
    names = dict.fromkeys(data_map.key)
    names |= dict.fromkeys(rule.column for rule in data_map.identifiers)
    names |= dict.fromkeys(column for rule in data_map.refs for column in rule.columns)
    # As the driver gives it: a text in a column of unknown type must not be taken for a number.
    columns = [type_coerce(table.c[name], types.NullType()).label(None) for name in names]
    is_theirs = [table.c[name] == plan.key.parameter(name) for name in data_map.key]
    row = session.execute(select(*columns).where(*is_theirs), values).one_or_none()
    if row is None:
        return None
    cells = {name: as_text(value) for name, value in zip(names, row, strict=True)}
    cells |= {name: text.rstrip(" ") for name, text in cells.items() if text and plan.is_padded(name)}
    subject_id = join_id(cells[name] for name in data_map.key)
    rules = data_map.tables[data_map.subject].columns
    cells |= {name: None for name, text in cells.items() if text and is_surrogate(text, rules[name])}
    refs = {rule.kind: rule.fill(cells) for rule in data_map.refs}
    return Subject(
        subject_id=subject_id,
        identifiers={rule.kind: cell for rule in data_map.identifiers if (cell := cells[rule.column])},
        refs={kind: ref for kind, ref in refs.items() if ref},
    )
