"""The command line: settings in, a sentence and an exit code out."""

from __future__ import annotations

import os
import sys

import click
from sqlalchemy.exc import DBAPIError

from effaced import log
from effaced.cli.apikey import apikey
from effaced.cli.audit import audit
from effaced.cli.bench import bench
from effaced.cli.datamap import datamap
from effaced.cli.migrate import keys, migrate
from effaced.cli.officer import officer
from effaced.cli.resolver import resolver
from effaced.cli.serve import drain, scheduler, web, worker
from effaced.cli.up import up
from effaced.config import load_settings, unknown_variables
from effaced.errors import ConfigurationError, EffacedError

# These make or bring their own settings.
_WITHOUT_SETTINGS = {"keys", "up", "bench"}


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="effaced-platform", prog_name="effaced")
@click.pass_context
def cli(context: click.Context) -> None:
    """Erase people from your own database and from every other system that knows them, and prove it.

    Settings come from EFFACED_* variables and from effaced.toml. `effaced up --demo` shows everything
    at work with no settings at all.
    """
    if context.invoked_subcommand in _WITHOUT_SETTINGS or {"-h", "--help"} & set(sys.argv):
        return
    for sentence in unknown_variables(dict(os.environ)):
        click.echo(f"Warning: {sentence}", err=True)
    context.obj = load_settings()
    log.configure(context.obj.log_level, context.obj.log_format)


for command in (
    up, web, worker, scheduler, drain, migrate, keys, datamap, resolver, officer, apikey, audit, bench
):  # fmt: skip
    cli.add_command(command)


def main() -> None:
    """Run, and turn what effaced refuses into a sentence on stderr. 2: settings; 1: everything else."""
    try:
        code = cli.main(prog_name="effaced", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except EffacedError as error:
        click.echo(str(error), err=True)
        sys.exit(2 if isinstance(error, ConfigurationError) else 1)
    except DBAPIError as error:
        click.echo(_about_database(error), err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _about_database(error: DBAPIError) -> str:
    said = str(error.orig).lower()
    if "readonly" in said or "read-only" in said or "permission denied" in said:
        return "The database can't be written: it is read-only for effaced. Nothing was changed."
    if "no such table" in said or "does not exist" in said:
        return "The database lacks a table that effaced needs. Run `effaced migrate`."
    if "locked" in said or "lock" in said:
        return "The database is busy: another process holds a lock. Nothing was changed; try again."
    if "connection" in said or "unable to open" in said or error.connection_invalidated:
        return "The database can't be reached. Check EFFACED_DATABASE_URL and that the server is up."
    return f"The database refused ({type(error.orig).__name__}). Nothing was changed."
