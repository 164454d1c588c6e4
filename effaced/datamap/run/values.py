"""The values of a plan's parameters for one person: the key, what to scrub, the key of hashes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, type_coerce, types
from sqlalchemy.orm import Session

from effaced.core.db.pipeline import Pipeline
from effaced.datamap.compile.key import cell_as_text
from effaced.datamap.compile.ownership import as_parameter, captured_name
from effaced.datamap.compile.parameters import HASH_INNER, HASH_LABEL, HASH_OUTER, scrub_name
from effaced.datamap.model.data_map import ColumnRule, DataMap, Strategy
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.surrogates import scrub_pattern as scrub
from effaced.datamap.surrogates.expressions import is_surrogate
from effaced.datamap.surrogates.sqlite_functions import register


def parameters_for_erasure(session: Session, plan: ErasurePlan, subject_id: str) -> dict[str, Any]:
    """Every parameter of the steps, rows locked and looked up. NotFound if no key can have this id."""
    values = parameters_for_reading(session, plan, subject_id)
    if not plan.captures:
        return values
    with (batch := Pipeline(session)):
        for lock in plan.locks.values():
            batch.run(lock, values)
        found = {name: batch.run(query, values) for name, query in plan.captures.items()}
    dialect = plan.schema.dialect
    return values | {
        captured_name(number): as_parameter(name, each.rows, dialect)
        for number, (name, each) in enumerate(sorted(found.items()))
    }


def parameters_for_reading(session: Session, plan: ErasurePlan, subject_id: str) -> dict[str, Any]:
    """The parameters for counts alone. One SELECT if there are texts to scrub, none otherwise."""
    values = plan.key.require(subject_id)
    if plan.schema.dialect == "sqlite":
        register(session.connection())
    if (hashing := plan.hashing) is not None:
        values |= {HASH_INNER: hashing.inner, HASH_OUTER: hashing.outer, HASH_LABEL: hashing.label}
    return values | _patterns(session, plan, values)


def _patterns(session: Session, plan: ErasurePlan, key: dict[str, Any]) -> dict[str, str | None]:
    """The pattern for each set of names to scrub, from the person's own row."""
    data_map, table = plan.data_map, plan.subject
    wanted = {scrub_name(rule): _looked_for(data_map, rule) for rule in _scrubbing(data_map)}
    columns = sorted({column for each in wanted.values() for column in each})
    if not columns:
        return dict.fromkeys(wanted)
    # As the driver gives it: a text in a column of unknown type must not be taken for a number.
    cells = [type_coerce(table.c[name], types.NullType()).label(None) for name in columns]
    query = select(*cells).where(*(table.c[name] == plan.key.parameter(name) for name in data_map.key))
    row = session.execute(query, key).one_or_none()
    rules = data_map.tables[data_map.subject].columns
    texts = {name: cell_as_text(cell) for name, cell in zip(columns, row, strict=True)} if row else {}
    own = {name: text for name, text in texts.items() if text and not is_surrogate(text, rules[name])}
    return {
        name: scrub.build_pattern(own[each] for each in names if each in own)
        for name, names in wanted.items()
    }


def _scrubbing(data_map: DataMap) -> list[ColumnRule]:
    """Every rule that scrubs: columns and documents, of the person's rows and of those that mention them."""
    columns = [
        rule
        for table in data_map.tables.values()
        for each in (table.columns, *(mention.columns for mention in table.mentions))
        for rule in each.values()
    ]
    return [each for rule in columns for each in rule.leaf_rules if each.strategy is Strategy.SCRUB]


def _looked_for(data_map: DataMap, rule: ColumnRule) -> list[str]:
    """The columns of the subject table that are meant: by their own names or those of their identifiers."""
    kinds = {each.kind: each.column for each in data_map.identifiers}
    return sorted(set(kinds.values()) if not rule.names else {kinds.get(name, name) for name in rule.names})
