"""The command line: settings in, a sentence and an exit code out."""

from __future__ import annotations

import os
import sys

import click

from effaced.cli.lazy_group import LazyGroup
from effaced.cli.output import prepare_streams
from effaced.core.errors import ConfigurationError, EffacedError
from effaced.core.private_files import keep_files_private

COMMANDS = {
    "up": ("up", "Run web, worker and scheduler on this machine, with a private Valkey."),
    "web": ("serve", "Serve the API and the console (gunicorn)."),
    "worker": ("serve", "Make the external calls (RQ worker)."),
    "scheduler": ("serve", "Start whatever is due, every few seconds."),
    "drain": (
        "serve",
        "Do everything that is due, once, without Redis: for cron, and for places without workers.",
    ),
    "migrate": ("migrate", "Bring the database to the schema this version of effaced needs."),
    "database": ("groups", "The PostgreSQL roles that effaced's processes connect as."),
    "keys": ("groups", "Keys that encrypt personal data, and recognise people by keyed hashes."),
    "datamap": (
        "groups",
        "The data map: which table holds what about whom, and what an erasure does to it.",
    ),
    "retention": (
        "groups",
        "What erasures have kept under `retain`: until when, why, and erasing it when that has ended.",
    ),
    "resolver": ("groups", "The external systems of resolvers.yaml."),
    "deadletter": (
        "groups",
        "Work that failed for good and waits for a person: calls, read-backs, executions, messages.",
    ),
    "breaker": (
        "groups",
        "Show circuit breakers and advice on them; pin, reset and configure them.",
    ),
    "notify": ("groups", "Who is notified when something needs a person, and whether it arrives."),
    "retries": (
        "groups",
        "Attempts at external calls: their results, and the policy by which they are repeated.",
    ),
    "officer": ("groups", "The people who work in the console."),
    "apikey": ("groups", "Keys with which the company's systems send requests."),
    "audit": ("groups", "The audit trail."),
    "openapi": ("openapi", "Print the OpenAPI document of the HTTP API."),
    "bench": ("groups", "Measure effaced against the least that does the same work, in one run."),
    "demo": ("groups", "Drills on a demo that runs (`make run`)."),
}
# These make or bring their own settings.
_WITHOUT_SETTINGS = {"keys", "up", "bench", "demo", "openapi"}
# These write nothing that a key would have to open again.
_WITHOUT_KEYS = {"database", "datamap"}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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
    from effaced.core import log
    from effaced.core.config import is_set, load_settings, unknown_variables
    from effaced.core.crypto import new_key

    for warning in unknown_variables(dict(os.environ)):
        click.echo(f"Warning: {warning}", err=True)
    # Any key will do: hashes are known by their form, whatever key made them.
    makeshift = context.invoked_subcommand in _WITHOUT_KEYS and not is_set("keys")
    context.obj = load_settings(**({"keys": new_key()} if makeshift else {}))
    log.configure(context.obj.log_level, context.obj.log_format)


def main() -> None:
    """Run, and turn what effaced refuses into a sentence on stderr. 2: settings; 1: everything else.

    Output that nobody reads to its end is no error: it ends with 141, without a word.
    """
    prepare_streams()
    keep_files_private()
    try:
        _require_text(sys.argv[1:])
        code = cli.main(prog_name="effaced", standalone_mode=False)
        sys.stdout.flush()  # so that what is still buffered can end it too
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except EffacedError as error:
        click.echo(str(error), err=True)
        sys.exit(2 if isinstance(error, ConfigurationError) else 1)
    except OSError as error:
        if error.errno is None:
            raise
        # A folder that is missing, a disk that is full: the system's own words, and of which file.
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"{where}{error.strerror}", err=True)
        sys.exit(1)
    except Exception as error:
        from sqlalchemy.exc import DBAPIError

        from effaced.cli.database_errors import sentence

        if not isinstance(error, DBAPIError):
            raise
        click.echo(sentence(error), err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _require_text(arguments: list[str]) -> None:
    """Refuse what no database can store and no message can repeat."""
    for number, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"Argument {number} is not valid UTF-8.") from None
