"""The command line: settings in, a sentence and an exit code out."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from effaced.errors import ConfigurationError, EffacedError

if TYPE_CHECKING:
    from sqlalchemy.exc import DBAPIError

# In the order in which the help shows them: the module, and the first sentence of the command's own help.
# A module is imported when its command is used: help does not wait for any of them, a worker not for Flask.
COMMANDS = {
    "up": ("up", "Run web, worker and scheduler on this machine, with a private Valkey."),
    "web": ("serve", "Serve the API and the console (gunicorn)."),
    "worker": ("serve", "Make the external calls (RQ worker)."),
    "scheduler": ("serve", "See to whatever is due, every few seconds."),
    "drain": (
        "serve",
        "Do everything that is due, once, without Redis: for cron, and for places that have no workers.",
    ),
    "migrate": ("migrate", "Bring the database to the shape this version of effaced needs."),
    "keys": ("migrate", "Keys that seal and recognise personal data."),
    "datamap": (
        "datamap",
        "The data map: which table holds what about whom, and what an erasure does to it.",
    ),
    "retention": (
        "retention",
        "What erasures have left under `retain`: until when, why, and erasing it when that has ended.",
    ),
    "resolver": ("resolver", "The external systems of resolvers.yaml."),
    "deadletter": (
        "deadletter",
        "What failed for good and waits for a person: calls, read-backs, executions, messages.",
    ),
    "breaker": ("breaker", "How breakers stand, and what is suggested for them; hold one open or closed."),
    "notify": ("notify", "Who is told when something needs a person, and whether it arrives."),
    "retries": ("retries", "Tries at external calls: what they came to, and when they are repeated."),
    "officer": ("officer", "The people who work in the console."),
    "apikey": ("apikey", "Keys with which the company's systems send requests."),
    "audit": ("audit", "The audit trail."),
    "bench": ("bench", "Measure effaced against the least that does the same work, in one run."),
    "demo": ("demo", "Drills on a demo that runs (`make run`)."),
}
# These make or bring their own settings.
_WITHOUT_SETTINGS = {"keys", "up", "bench", "demo"}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _line = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"effaced.cli.{module}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_module, line) in COMMANDS.items()])


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
    from effaced import log
    from effaced.config import load_settings, unknown_variables

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
    except Exception as error:
        from sqlalchemy.exc import DBAPIError

        if not isinstance(error, DBAPIError):
            raise
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
