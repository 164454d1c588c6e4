"""A PostgreSQL database with the three roles that `effaced database roles` makes, each able to log in."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import forked
import psycopg
from sqlalchemy import make_url

from effaced import migrate
from effaced.core.crypto import new_key


@dataclass(frozen=True)
class Cast:
    """The database's administrator, and the roles by what they are for."""

    admin_url: str
    suffix: str
    password: str
    folder: Path

    def name(self, kind: str) -> str:
        return f"effaced_{kind}_{self.suffix}"

    def url(self, kind: str) -> str:
        login = make_url(self.admin_url).set(username=self.name(kind), password=self.password)
        return login.render_as_string(hide_password=False)

    def make_roles(self, datamap: Path | None = None, *more: str, url: str | None = None) -> str:
        """`effaced database roles`, as the administrator would type it; what it prints."""
        named = [each for kind in ("owner", "run", "read") for each in (f"--{kind}", self.name(kind))]
        done = self.effaced("database", "roles", *named, *more, url=url or self.admin_url, datamap=datamap)
        assert done.returncode == 0, done.stderr
        for kind in ("owner", "run", "read") if "--print" not in more else ():
            self.execute(f"ALTER ROLE {self.name(kind)} PASSWORD '{self.password}'")
        return done.stdout

    def effaced(self, *arguments: str, url: str, datamap: Path | None = None, **environ: str):
        outside = {name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")}
        settings = {
            "EFFACED_DATABASE_URL": url,
            "EFFACED_DATAMAP": str(datamap or self.folder / "none.yaml"),
            "EFFACED_KEYS": new_key(),
            **environ,
        }
        return forked.run(*arguments, environ={**outside, **settings}, folder=self.folder)

    def migrate(self) -> None:
        migrate.upgrade(self.url("owner"))

    def exists(self, kind: str) -> bool:
        with psycopg.connect(self.admin_url) as connection:
            found = connection.execute("SELECT to_regrole(%s) IS NOT NULL", (self.name(kind),)).fetchone()
        return found == (True,)

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@contextmanager
def cast(admin_url: str, folder: Path) -> Iterator[Cast]:
    made = Cast(admin_url, secrets.token_hex(4), secrets.token_hex(8), folder)
    try:
        yield made
    finally:
        # Roles belong to the whole server, so they would outlive the database. What somebody has given to
        # others goes with their own rights, so whoever gave comes first.
        found = [made.name(kind) for kind in ("dba", "owner", "run", "read") if made.exists(kind)]
        made.execute(
            *(f"DROP OWNED BY {name} CASCADE" for name in found), *(f"DROP ROLE {name}" for name in found)
        )
