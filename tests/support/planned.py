"""Plans that many tests have alike: made once for each kind of database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sqlalchemy.orm import Session

from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure
from effaced.datamap.schema.fingerprint import read_fingerprint

_made: dict[tuple[str, str], ErasurePlan] = {}


def planned(session: Session, path: Path) -> ErasurePlan:
    """By a map that always stands over the same tables; what planning does is tested elsewhere."""
    connection, data_map = session.connection(), load_map(path)
    asked = session.get_bind().dialect.name, path.read_text(encoding="utf-8")
    if asked not in _made:
        _made[asked] = plan_erasure(connection, data_map)
    return replace(_made[asked], fingerprint=read_fingerprint(connection, data_map))
