"""`effaced migrate` and `effaced keys`."""

from __future__ import annotations

import click

from effaced import migrate as migrations
from effaced.core import crypto
from effaced.core.config import Settings


@click.command()
@click.pass_obj
def migrate(settings: Settings) -> None:
    """Bring the database to the schema this version of effaced needs.

    Only tables whose names start with effaced_ are touched. Safe to run again, and by several
    processes at once.
    """
    migrations.upgrade(settings.database_url)
    click.echo("The database is up to date.")


@click.command("new")
@click.option("--id", "key_id", default="k1", show_default=True, help="A short name, letters and digits.")
def new(key_id: str) -> None:
    """Print a new key for EFFACED_KEYS.

    To rotate, put the new key before the old ones (new,old): the first one seals, all of them open.
    """
    if not key_id.isalnum() or len(key_id) > 16:
        raise click.BadParameter("up to 16 letters and digits", param_hint="--id")
    click.echo(crypto.new_key(key_id))
