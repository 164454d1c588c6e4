"""`effaced apikey ...`: which systems may send requests."""

from __future__ import annotations

import json

import click
from rich.table import Table
from rich.text import Text

from effaced.accounts.api_keys import create_api_key, find_api_key, list_api_keys, revoke_api_key
from effaced.accounts.scopes import DEFAULT, Scope
from effaced.accounts.tables import ApiKey
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
@click.pass_obj
def new(settings: Settings, name: str, approvals: str, scopes: tuple[str, ...]) -> None:
    """Create a key. It is shown this once: effaced keeps only a hash of it."""
    with open_database(settings.database_url).begin() as session:
        _, token = create_api_key(
            session, name=name, approvals_needed=int(approvals), actor=_ACTOR, scopes=scopes
        )
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
    if as_json:
        click.echo(json.dumps([_plain(key) for key in keys], indent=2))
        return
    if not keys:
        click.echo("No system can send requests yet. `effaced apikey new` makes a key.")
        return
    table = Table("name", "prefix", "approvals", "scopes", "state", "last used")
    for key in keys:
        state = f"revoked {key.revoked_at:%Y-%m-%d}" if key.revoked_at else "active"
        used = f"{key.last_used_at:%Y-%m-%d %H:%M} UTC" if key.last_used_at else "never"
        # Text, not markup: square brackets in a name are just that.
        table.add_row(
            Text(key.name), f"eff_{key.prefix}", str(key.approvals_needed), _scopes(key), state, used
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


def _scopes(key: ApiKey) -> str:
    return ", ".join(DEFAULT if key.scopes is None else key.scopes)


def _plain(key: ApiKey) -> dict[str, object]:
    return {
        "id": str(key.id),
        "name": key.name,
        "prefix": key.prefix,
        "approvals_needed": key.approvals_needed,
        "scopes": list(DEFAULT if key.scopes is None else key.scopes),
        "created_at": key.created_at.isoformat(),
        "last_used_at": key.last_used_at.isoformat() if key.last_used_at else None,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
    }
