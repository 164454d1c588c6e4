"""What the commands about the data map have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from sqlalchemy.orm import Session

from effaced.config import Settings
from effaced.datamap.model import DataMap
from effaced.datamap.plan import ErasurePlan, plan_erasure
from effaced.db import Database

map_option = click.option(
    "--map",
    "path",
    type=click.Path(path_type=Path),
    help="The data map to read instead of the one in the settings.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")


@contextmanager
def looking(settings: Settings) -> Iterator[Session]:
    database = Database(settings.database_url)
    try:
        with database.read() as session:
            yield session
    finally:
        database.dispose()


def planned(session: Session, settings: Settings, data_map: DataMap) -> ErasurePlan:
    """The map as it would be carried out. Keys only where they are needed: they are a secret."""
    keyring = settings.keyring if data_map.pseudonymises else None
    return plan_erasure(session.connection(), data_map, keyring)


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
