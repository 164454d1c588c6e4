"""Plans that many tests have alike: made once for each kind of database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.orm import Session

from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure

_made: dict[tuple[str, str], ErasurePlan] = {}


def planned(session: Session, path: Path) -> ErasurePlan:
    """By a map that always stands over the same tables; what planning does is tested elsewhere."""
    asked = session.get_bind().dialect.name, path.read_text(encoding="utf-8")
    if asked not in _made:
        _made[asked] = plan_erasure(session.connection(), load_map(path))
    return _made[asked]
