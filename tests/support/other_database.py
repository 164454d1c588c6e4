"""A second database, a shop's, that is erased in by the `sql` kind; and its troubles."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import psycopg
from sqlalchemy import make_url
from waiting import PATIENCE

from effaced.core.crypto import Keyring
from effaced.resolvers.protocols import Limits
from effaced.resolvers.sql import SqlResolver, from_config

TABLES = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, email VARCHAR(200) NOT NULL, name TEXT, phone TEXT)",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id), note TEXT)",
    "CREATE TABLE invoices (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, number TEXT)",
)
REFUSES = {
    "sqlite": (
        "CREATE TRIGGER stubborn_gone BEFORE DELETE ON users WHEN OLD.name = 'Stubborn'"
        " BEGIN SELECT RAISE(ABORT, 'stubborn stays'); END",
        "CREATE TRIGGER stubborn_changed BEFORE UPDATE ON users WHEN OLD.name = 'Stubborn'"
        " BEGIN SELECT RAISE(ABORT, 'stubborn stays'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN RAISE EXCEPTION '% stays, number %', OLD.email, OLD.id; END $$",
        "CREATE TRIGGER stubborn BEFORE DELETE OR UPDATE ON users FOR EACH ROW"
        " WHEN (OLD.name = 'Stubborn') EXECUTE FUNCTION stay()",
    ),
}
# Everything of a person goes.
GOES = """
    version: 1
    subject: {table: users, key: id}
    identifiers: {email: email}
    tables:
      users: {columns: {id: not_personal, email: delete, name: delete, phone: delete}}
      orders:
        link: {to: users, on: {user_id: id}}
        columns: {id: not_personal, user_id: not_personal, note: delete}
      invoices:
        link: {to: users, on: {user_id: id}}
        columns: {id: not_personal, user_id: not_personal, number: delete}
    rectify: {name: [users.name], email: [users.email], phone: [users.phone]}
"""
# The row of a person stays without the person, and so do invoices.
STAYS = """
    version: 1
    subject: {table: users, key: id}
    identifiers: {email: email}
    tables:
      users:
        columns: {id: not_personal, email: {anonymise: random_unique}, name: delete, phone: delete}
      orders:
        link: {to: users, on: {user_id: id}}
        columns: {id: not_personal, user_id: not_personal, note: delete}
      invoices:
        link: {to: users, on: {user_id: id}}
        columns: {id: not_personal, user_id: not_personal, number: {retain: {basis: "Tax law, 10 years"}}}
    rectify: {name: [users.name], phone: [users.phone]}
"""


class Shop:
    """The other database, with a connection of the test's own to look and to make trouble with."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.numbers = itertools.count(1)
        self.is_postgres = not url.startswith("sqlite")
        self.run(*TABLES, *REFUSES["postgresql" if self.is_postgres else "sqlite"])

    @property
    def path(self) -> Path:
        return Path(make_url(self.url).database or "")

    def connect(self, **options: Any) -> Any:
        """A connection that commits each statement."""
        if self.is_postgres:
            return psycopg.connect(self.url, autocommit=True, **options)
        return sqlite3.connect(self.path, isolation_level=None, **options)

    def run(self, *statements: str) -> None:
        with closing(self.connect()) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection:
            return [tuple(row) for row in connection.execute(query)]

    def person(self, name: str = "Anna Alt", *, orders: int = 1, invoices: int = 0) -> int:
        number = next(self.numbers)
        self.run(
            f"INSERT INTO users VALUES ({number}, 'anna{number}@people.example', '{name}', '+49 1')",
            *(f"INSERT INTO orders VALUES ({number * 100 + each}, {number}, 'hi')" for each in range(orders)),
            *(
                f"INSERT INTO invoices VALUES ({number * 100 + each}, {number}, 'R-1')"
                for each in range(invoices)
            ),
        )
        return number

    def calls(self) -> list[tuple[Any, ...]]:
        """What the ledger says: operation, outcome, basis and rows."""
        return self.rows("SELECT operation, outcome, basis, rows FROM effaced_sql_calls ORDER BY at")

    def resolver(
        self,
        text: str = GOES,
        *,
        timeout: float = PATIENCE,
        concurrency: int = 10,
        name: str = "shop",
        keyring: Keyring | None = None,
        **keys: Any,
    ) -> SqlResolver:
        path = self.folder / "shop.yaml"
        path.write_text(dedent(text), encoding="utf-8")
        block = {"url": self.url, "map": str(path)} | keys
        limits = Limits(timeout=timedelta(seconds=timeout), concurrency=concurrency)
        return from_config(name, block, limits, keyring=keyring)

    # --- trouble ---

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody can connect."""
        if not self.is_postgres:
            hidden = self.path.rename(f"{self.path}.away")
            try:
                yield
            finally:
                hidden.rename(self.path)
            return
        name = make_url(self.url).database
        with closing(psycopg.connect(self._server, autocommit=True)) as admin:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
            try:
                yield
            finally:
                admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Somebody holds everything."""
        with closing(self.connect()) as connection:
            if self.is_postgres:
                connection.execute("BEGIN")
                connection.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
            else:
                connection.execute("BEGIN EXCLUSIVE")
            try:
                yield
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def role(self, rights: str) -> Iterator[str]:
        """The URL with a login that has these rights on the tables, and a password."""
        name = f"clerk_of_{make_url(self.url).database}"
        self.run(f"CREATE ROLE {name} LOGIN PASSWORD 'right'")
        self.run(f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO {name}")
        try:
            url = make_url(self.url).set(username=name, password="right")
            yield url.render_as_string(hide_password=False)
        finally:
            self.run(f"DROP OWNED BY {name}", f"DROP ROLE {name}")

    @property
    def _server(self) -> str:
        return make_url(self.url).set(database="postgres").render_as_string(hide_password=False)
