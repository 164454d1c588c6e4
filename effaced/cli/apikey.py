"""`effaced apikey ...`: which systems may call, and what for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID

import click
from rich.table import Table
from rich.text import Text
from sqlalchemy.orm import Session

from effaced.accounts.api_keys import create_api_key, find_api_key, list_api_keys, revoke_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.officers import find_officer, list_officers, may_decide
from effaced.accounts.scopes import DEFAULT, Scope
from effaced.accounts.tables import ApiKey, Officer
from effaced.cli.terminal import terminal
from effaced.core.config import Settings
from effaced.core.db.schema_level import open_database
from effaced.core.errors import NotFound

_ACTOR = "cli"


@click.command()
@click.option("--name", required=True, help="Which system gets it, e.g. 'web shop'.")
@click.option(
    "--approvals",
    type=click.Choice(["0", "1"]),
    default="1",
    show_default=True,
    help="How many officers must approve its requests; 0 executes them at once.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([each.value for each in Scope]),
    default=[each.value for each in DEFAULT],
    show_default=True,
    help="What it may be used for; say it once for each. Writing includes reading.",
)
@click.option(
    "--officer",
    metavar="EMAIL",
    help="In whose name it decides; needed for the scopes decide:*, and only for them.",
)
@click.option("--sandbox", is_flag=True, help="It tries requests out: they are checked, never executed.")
@click.option(
    "--metadata",
    multiple=True,
    metavar="NAME",
    help="A name of your own references that its requests can carry, e.g. ticket; say it once for each.",
)
@click.pass_obj
def new(
    settings: Settings,
    name: str,
    approvals: str,
    scopes: tuple[str, ...],
    officer: str | None,
    sandbox: bool,
    metadata: tuple[str, ...],
) -> None:
    """Create a key. It is shown this once: effaced keeps only a hash of it."""
    with open_database(settings.database_url).begin() as session:
        wanted = NewApiKey(
            name=name,
            approvals_needed=int(approvals),
            scopes=scopes,
            officer_id=None if officer is None else _officer_id(session, officer),
            sandbox=sandbox,
            metadata_keys=metadata,
        )
        _, token = create_api_key(session, wanted, actor=_ACTOR)
    # Only the key goes to standard output, so that a script can catch it.
    click.echo("Keep this key in a safe place; it can't be shown again:", err=True)
    click.echo(token)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_obj
def list_command(settings: Settings, as_json: bool) -> None:
    """Show all keys, without their secrets."""
    with open_database(settings.database_url).read() as session:
        keys = list_api_keys(session)
        officers = {each.id: each for each in list_officers(session)}
    if as_json:
        click.echo(json.dumps([_plain(key, officers) for key in keys], indent=2))
        return
    if not keys:
        click.echo("No system can send requests yet. `effaced apikey new` makes a key.")
        return
    table = Table("name", "prefix", "approvals", "scopes", "officer", "metadata", "state", "last used")
    for key in keys:
        used = f"{key.last_used_at:%Y-%m-%d %H:%M} UTC" if key.last_used_at else "never"
        # Text, not markup: square brackets in a name are just that.
        table.add_row(
            Text(key.name),
            f"eff_{key.prefix}",
            str(key.approvals_needed),
            _scopes(key),
            Text(_officer(key, officers) or ""),
            ", ".join(key.metadata_keys or ()),
            _state(key, officers),
            used,
        )
    terminal().print(table)


@click.command()
@click.argument("key", metavar="NAME_OR_PREFIX")
@click.pass_obj
def revoke(settings: Settings, key: str) -> None:
    """Revoke a key at once. Requests that it sent are carried out."""
    with open_database(settings.database_url).begin() as session:
        found = find_api_key(session, key)
        if found is None:
            raise NotFound("No API key has this name or prefix. `effaced apikey list` shows all of them.")
        revoke_api_key(session, found, actor=_ACTOR)
    click.echo("Revoked.")


def _officer_id(session: Session, email: str) -> UUID:
    found = find_officer(session, email)
    if found is None:
        raise NotFound("No officer has this e-mail address. `effaced officer list` shows all of them.")
    return found.id


def _scopes(key: ApiKey) -> str:
    return ", ".join(DEFAULT if key.scopes is None else key.scopes)


def _officer(key: ApiKey, officers: Mapping[UUID, Officer]) -> str | None:
    found = officers.get(key.officer_id) if key.officer_id else None
    return found.email if found else None


def _state(key: ApiKey, officers: Mapping[UUID, Officer]) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    if key.officer_id and not ((officer := officers.get(key.officer_id)) and may_decide(officer)):
        return "stopped: its officer may not decide"
    return "sandbox" if key.sandbox else "active"


def _plain(key: ApiKey, officers: Mapping[UUID, Officer]) -> dict[str, object]:
    return {
        "id": str(key.id),
        "name": key.name,
        "prefix": key.prefix,
        "approvals_needed": key.approvals_needed,
        "scopes": list(DEFAULT if key.scopes is None else key.scopes),
        "officer": _officer(key, officers),
        "officer_id": str(key.officer_id) if key.officer_id else None,
        "sandbox": key.sandbox,
        "metadata_keys": key.metadata_keys or [],
        "state": _state(key, officers),
        "created_at": key.created_at.isoformat(),
        "last_used_at": key.last_used_at.isoformat() if key.last_used_at else None,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
    }
