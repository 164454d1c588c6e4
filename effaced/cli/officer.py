"""`effaced officer ...`: who may sign in to the console."""

from __future__ import annotations

import json
import sys

import click
from rich.table import Table
from rich.text import Text
from sqlalchemy.orm import Session

from effaced.accounts.officers import (
    create_officer,
    deactivate_officer,
    find_officer,
    list_officers,
    set_password,
)
from effaced.accounts.tables import Officer
from effaced.accounts.throttle import reset_counters
from effaced.cli.terminal import terminal
from effaced.core.config import Settings
from effaced.core.db.schema_level import open_database
from effaced.core.errors import NotFound
from effaced.model import Role

_ACTOR = "cli"
_password_from_stdin = click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it."
)


@click.command()
@click.argument("email")
@click.option("--name", required=True, help="How the console calls them.")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.OFFICER.value,
    show_default=True,
    help="auditor: reads everything; officer: reads and acts; admin: administers too.",
)
@_password_from_stdin
@click.pass_obj
def add(settings: Settings, email: str, name: str, role: str, password_stdin: bool) -> None:
    """Add somebody who can sign in. The password needs at least 12 characters."""
    password = _password(password_stdin)
    with open_database(settings.database_url).begin() as session:
        create_officer(session, email=email, name=name, role=Role(role), password=password, actor=_ACTOR)
    click.echo(f"{email.strip().lower()} can sign in now, as {role}.")


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_obj
def list_command(settings: Settings, as_json: bool) -> None:
    """Show all officers."""
    with open_database(settings.database_url).read() as session:
        officers = list_officers(session)
    if as_json:
        click.echo(json.dumps([_plain(each) for each in officers], indent=2))
        return
    if not officers:
        click.echo("Nobody can sign in yet. `effaced officer add` makes the first officer.")
        return
    table = Table("name", "e-mail", "role", "state", "last sign-in")
    for each in officers:
        seen = f"{each.last_sign_in_at:%Y-%m-%d %H:%M} UTC" if each.last_sign_in_at else "never"
        # Text, not markup: square brackets in a name are just that.
        table.add_row(Text(each.name), Text(each.email), each.role.value, _state(each), seen)
    terminal().print(table)


@click.command()
@click.argument("email")
@_password_from_stdin
@click.pass_obj
def passwd(settings: Settings, email: str, password_stdin: bool) -> None:
    """Set a new password. Ends their open sessions and the wait after many wrong passwords."""
    database = open_database(settings.database_url)
    with database.read() as session:
        found = _find(session, email)  # before anybody types a password for nothing
    password = _password(password_stdin)
    with database.begin() as session:
        set_password(session, found, password, actor=_ACTOR)
        reset_counters(session, settings.keyring, email)
    click.echo("The password is changed; open sessions have ended.")


@click.command()
@click.argument("email")
@click.pass_obj
def deactivate(settings: Settings, email: str) -> None:
    """End an officer's access. What they did stays in the audit trail."""
    with open_database(settings.database_url).begin() as session:
        deactivate_officer(session, _find(session, email), actor=_ACTOR)
    click.echo("Deactivated; open sessions have ended.")


def _find(session: Session, email: str) -> Officer:
    found = find_officer(session, email)
    if found is None:
        raise NotFound("No officer has this e-mail address. `effaced officer list` shows all of them.")
    return found


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    answer: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return answer


def _state(officer: Officer) -> str:
    return "active" if officer.active else "deactivated"


def _plain(officer: Officer) -> dict[str, object]:
    seen = officer.last_sign_in_at
    return {
        "id": str(officer.id),
        "email": officer.email,
        "name": officer.name,
        "role": officer.role.value,
        "active": officer.active,
        "created_at": officer.created_at.isoformat(),
        "last_sign_in_at": seen.isoformat() if seen else None,
    }
