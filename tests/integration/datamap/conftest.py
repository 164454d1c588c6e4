"""A company's database to try maps on, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import psycopg
import pytest
from quick_database import open_quickly
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.core.db.pipeline import driver_connection
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.plan.erasure import ErasurePlan, plan_erasure


class Company:
    """One open session on a database, with shorthands for tables, rows and maps."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.engine = session.connection().dialect.name

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.session.execute(text(statement))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.session.execute(text(query))]

    def map(self, yaml: str) -> DataMap:
        path = self.folder / "datamap.yaml"
        path.write_text(dedent(yaml), encoding="utf-8")
        return load_map(path)

    def plan(self, yaml: str, keyring: Keyring | None = None) -> ErasurePlan:
        return plan_erasure(self.session.connection(), self.map(yaml), keyring)

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        """The statements sent within the block."""
        sent: list[str] = []
        connection = self.session.connection()

        def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
            sent.append(statement)

        if self.engine == "postgresql":
            with _noting_cursors(driver_connection(connection), sent):
                yield sent
            return
        event.listen(connection, "before_cursor_execute", note)
        yield sent
        event.remove(connection, "before_cursor_execute", note)


@contextmanager
def _noting_cursors(connection: psycopg.Connection[Any], sent: list[str]) -> Iterator[None]:
    """Also what goes straight to the driver is noted."""
    usual = connection.cursor_factory

    class NotingCursor(usual):  # type: ignore[misc, valid-type]
        def execute(self, query: Any, *args: Any, **options: Any) -> Any:
            sent.append(str(query))
            return super().execute(query, *args, **options)

    connection.cursor_factory = NotingCursor
    try:
        yield
    finally:
        connection.cursor_factory = usual


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def company_database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """One database for all tests of a module: a test commits nothing, so each finds it empty."""
    if request.param == "sqlite":
        folder = request.getfixturevalue("tmp_path_factory").mktemp("company")
        database = open_quickly(f"sqlite:///{folder / 'company.db'}")
        yield database
        database.dispose()
        return
    admin = request.getfixturevalue("postgres_admin")
    url = admin.create()
    database = open_quickly(url)
    yield database
    database.dispose()
    admin.drop(url)


@pytest.fixture
def company(company_database: Database, tmp_path: Path) -> Iterator[Company]:
    """A company with no tables yet; the test runs once per engine."""
    with company_database.sessions() as session:
        yield Company(session, tmp_path)
