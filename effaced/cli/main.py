"""The command line: settings in, a sentence and an exit code out."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click
from sqlalchemy.exc import DBAPIError

from effaced import log
from effaced.config import load_settings, unknown_variables
from effaced.errors import ConfigurationError, EffacedError

# In the order in which the help shows them. A command's module is imported when the command is used: a
# worker does not wait for Flask, nor the web for the benches.
COMMANDS = {
    "up": "up",
    "web": "serve",
    "worker": "serve",
    "scheduler": "serve",
    "drain": "serve",
    "migrate": "migrate",
    "keys": "migrate",
    "datamap": "datamap",
    "resolver": "resolver",
    "deadletter": "deadletter",
    "breaker": "breaker",
    "notify": "notify",
    "retries": "retries",
    "officer": "officer",
    "apikey": "apikey",
    "audit": "audit",
    "bench": "bench",
    "demo": "demo",
}
# These make or bring their own settings.
_WITHOUT_SETTINGS = {"keys", "up", "bench", "demo"}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"effaced.cli.{COMMANDS[cmd_name]}"), cmd_name)
        return command


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
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
