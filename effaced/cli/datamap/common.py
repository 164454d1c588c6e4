"""What the commands about the data map have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from sqlalchemy.orm import Session

from effaced.core.config import Settings
from effaced.core.db import Database, sqlite_file
from effaced.core.errors import ConfigurationError, Unavailable
from effaced.core.private_files import new_private_file
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure

map_option = click.option(
    "--map",
    "path",
    type=click.Path(path_type=Path),
    help="The data map to read instead of the one in the settings.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")


@contextmanager
def looking(settings: Settings) -> Iterator[Session]:
    """A session that leaves the database as it is; a SQLite file that is not there is not made."""
    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        raise Unavailable("The database can't be reached: the file in EFFACED_DATABASE_URL is not there.")
    database = Database(settings.database_url, only_look=True)
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


def write_out(path: Path, text: str) -> None:
    try:
        new_private_file(path)  # a draft tells how the database is built
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"--output: {path} can't be written: {error.strerror}.") from None
