"""`effaced database ...`: the roles that effaced's processes connect as."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from sqlalchemy import Connection

from effaced.core.config import Settings
from effaced.core.db import Database, is_postgres
from effaced.core.db.roles import Roles, existing_roles, require_granted, role_statements
from effaced.core.errors import Refused
from effaced.datamap.compile.rights import grant_statements
from effaced.datamap.load.file import load_map
from effaced.datamap.schema.read import read_schema
from effaced.migrate import load_tables

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PASSWORDS = "Set passwords where nothing is logged, such as \\password in psql. These have none yet:"


def _role_name(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise click.BadParameter("lower-case letters, digits and underscores, at most 63")
    return name


@click.command()
@click.option("--owner", default="effaced_owner", show_default=True, callback=_role_name, help="Migrates.")
@click.option(
    "--run", default="effaced_run", show_default=True, callback=_role_name, help="Web, workers, scheduler."
)
@click.option("--read", default="effaced_read", show_default=True, callback=_role_name, help="Only reads.")
@click.option("--print", "only_print", is_flag=True, help="Print the SQL, for somebody else to run.")
@click.pass_obj
def roles(settings: Settings, owner: str, run: str, read: str, only_print: bool) -> None:
    """Create the roles that own, run and read, with no more rights than each needs.

    EFFACED_DATABASE_URL must name somebody who may create roles; with --print, anybody. Run it again after an
    upgrade or a change of the data map: it grants what is missing.
    """
    names = Roles(owner, run, read)
    if len({owner, run, read}) < 3:
        raise Refused("--owner, --run and --read must be three different roles.")
    opened = Database(settings.database_url, only_look=True)
    try:
        with opened.engine.begin() as connection:
            statements = list(_statements(connection, settings, names))
            if only_print:
                click.echo("\n".join(["BEGIN;", *(f"{each};" for each in statements), "COMMIT;"]))
                return
            before = existing_roles(connection, names)
            for each in statements:
                connection.exec_driver_sql(each.replace("%", "%%"))
            require_granted(connection, names)
    finally:
        opened.dispose()
    click.echo(f"The roles {owner}, {run} and {read} are set up.")
    if made := [each for each in (owner, run, read) if each not in before]:
        click.echo(f"{_PASSWORDS} {', '.join(made)}.", err=True)


def _statements(connection: Connection, settings: Settings, names: Roles) -> Iterator[str]:
    if not is_postgres(connection):
        raise Refused(
            "SQLite has no roles: whoever can open the file can read and change everything in it, the audit"
            " trail's triggers included. Keep the file for the one user that effaced runs as."
        )
    yield from role_statements(connection, load_tables().metadata, names)
    if not settings.datamap.exists():
        click.echo(
            f"There is no data map at {settings.datamap} yet, so {names.run} gets no rights on your tables."
            " Run this again when there is one.",
            err=True,
        )
        return
    data_map = load_map(settings.datamap)
    schema = read_schema(connection, data_map.schemas)
    yield from grant_statements(connection, schema, data_map, names.run)
