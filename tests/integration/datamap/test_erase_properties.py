"""Whatever the schema, the map and the data: an erasure does what the map says, and nothing else.

The worlds are those of `worlds.py`, and what must come of an erasure is worked out a second time in
`world_reckoning.py`, without any of the product's code.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, reject, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session
from world import World
from world_cells import KEYRING
from world_content import Pick
from world_database import build, look, script, violations, write_map
from world_reckoning import reckon
from worlds import draw_world

from effaced.core.db import Database
from effaced.core.errors import ConfigurationError
from effaced.datamap.compile.key import join_id
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure
from effaced.datamap.run.erase import TableEffect, count_reachable, dry_run, erase, erase_and_verify
from effaced.datamap.run.subject import find_subject

EXAMPLES = int(os.environ.get("EFFACED_EXAMPLES", "30"))
SHARDS = 5
"""Per database, so that every worker has some; ten times as many examples in all."""
REFUSED = re.compile("than SQLite can read in one statement|point at each other in a cycle")
"""What no order of statements can do, once in some thousand worlds. Any other refusal is a mistake."""
PHASES = [phase for phase in Phase if phase is not Phase.explain]


@cache
def below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


@st.composite
def worlds(draw: st.DrawFn, dialect: str) -> World:
    return draw_world(Pick(lambda count: draw(below(count))), dialect)


@pytest.mark.property
@pytest.mark.parametrize("shard", range(SHARDS))
def test_an_erasure_does_what_the_map_says_and_nothing_else(
    company_database: Database, tmp_path: Path, shard: int
) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(world=worlds(company_database.engine.dialect.name))
    def holds(world: World) -> None:
        path = tmp_path / "datamap.yaml"
        path.write_text(said := write_map(world), encoding="utf-8")
        note(";\n".join([*script(world), said]))
        with company_database.sessions() as session:  # never committed: each example finds it empty
            build(session, world)
            try:
                plan = plan_erasure(session.connection(), load_map(path), KEYRING)
            except ConfigurationError as refused:
                if any(not REFUSED.search(each.message) for each in refused.problems):
                    raise
                reject()
            for place, subject in enumerate(world.subjects):
                for person in range(2 - place):
                    erase_one(session, world, plan.for_people(kind_of(world, place)), subject, person)

    holds()


def kind_of(world: World, place: int) -> str | None:
    return f"kind{place}" if len(world.subjects) > 1 else None


def erase_one(session: Session, world: World, plan: ErasurePlan, subject: int, person: int) -> None:
    """Everything that must hold when this person is erased, in what earlier ones have left of the world."""
    before = look(session, world)
    rows = [row for _, row in sorted(before[subject].items(), key=str)]
    if person >= len(rows):
        return
    key = tuple(rows[person][name] for name in world.key_of_subject(subject))
    expected = reckon(world, before, subject, key)
    subject_id = join_id(key)
    found = find_subject(session, plan, subject_id)
    assert found is not None
    assert found.subject_id == subject_id

    foreseen = dry_run(session, plan, subject_id)
    assert before == look(session, world), "a dry run changes nothing"
    done = erase_and_verify(session, plan, subject_id)
    after = look(session, world)
    wrong = list(expected.mistakes(world, after))
    assert not wrong, wrong
    assert foreseen == done.effects, "a dry run says what the run will do"
    assert told(done.effects) == {
        name: sorted(((each.action, each.rows, each.scrubbed, each.retained) for each in all_told), key=str)
        for name, all_told in expected.told.items()
    }
    assert done.left == count_reachable(session, plan, subject_id) == {}, "reading back finds nothing"
    assert violations(session, world) == []

    assert all(effect.changed == 0 for effect in erase(session, plan, subject_id)), "again changes nothing"
    assert after == look(session, world)


def told(effects: list[TableEffect]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in effects:
        retained = [tuple(one) for one in each.retained]
        found.setdefault(each.table, []).append((str(each.action), each.rows, dict(each.scrubbed), retained))
    return {name: sorted(all_told, key=str) for name, all_told in found.items()}
