"""`effaced resolver check`: can the read-back of each system be trusted?"""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass, field

import click
from rich.table import Table
from rich.text import Text

from effaced.cli.terminal import terminal
from effaced.core.config import Settings
from effaced.core.db.schema_level import open_database, require_fitting_schema
from effaced.core.errors import NotFound, Problem, Refused, Unavailable
from effaced.datamap.run.subject import find_subject
from effaced.model import CheckReason, ReadBackProof
from effaced.resolvers.check import Checked, check_all
from effaced.resolvers.load import load_resolvers
from effaced.resolvers.read_backs import record_check
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.resolvers.settings import suggest
from effaced.runtime import Runtime

PROOF_COLOURS = {
    ReadBackProof.PROVEN: "green",
    ReadBackProof.UNPROVEN: "yellow",
    ReadBackProof.FAILED: "red",
}


@dataclass(frozen=True, slots=True)
class _Options:
    """What was typed. Whoever it names stays out of every message."""

    canary: str | None = field(repr=False)
    person: str | None = field(repr=False)
    erase: bool
    yes: bool


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--canary", metavar="REF", help="The reference of a test person, instead of the file's.")
@click.option("--person", metavar="ID", help="A test person in your database: take the reference from there.")
@click.option("--erase-canary", is_flag=True, help="Erase the canary, and see that it is gone. This deletes.")
@click.option("--yes", is_flag=True, help="Erase the canary without asking.")
@click.pass_context
def check(
    ctx: click.Context,
    names: tuple[str, ...],
    canary: str | None,
    person: str | None,
    erase_canary: bool,
    yes: bool,
) -> None:
    """Prove the read-back of each system: it must see the canary, and must not see an invented reference.

    Deletes nothing, unless --erase-canary says so. The result is kept and shown in the console. Exits with 1
    if a check has failed; unproven is no failure.
    """
    settings: Settings = ctx.obj
    options = _Options(canary, person, erase_canary, yes)
    _refuse_mixed(names, options)
    with closing(_Checks(settings)) as checks:
        refuse_unknown(checks.registry, names)
        if not len(checks.registry):
            click.echo(f"No resolvers in {settings.resolvers}, so there is nothing to check.")
            return
        canaries = checks.canaries(names, options)
        if erase_canary:
            _confirm(checks.registry.get(names[0]), canaries, options)
        found = asyncio.run(check_all(checks.registry, names, canaries=canaries, erase=erase_canary))
        terminal().print(_table(found))
        checks.record(found)
    if erase_canary and found[0].reason is CheckReason.CANARY_ERASED:
        click.echo("Create the canary again: the next check looks for it.")
    if any(each.proof is ReadBackProof.FAILED for each in found):
        ctx.exit(1)


class _Checks:
    """The registry as the workers load it, and the database."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runtime = Runtime(settings) if settings.datamap.exists() else None
        self._db = self._runtime.db if self._runtime else open_database(settings.database_url)
        self.registry: ResolverRegistry = load_resolvers(
            settings, self._runtime.datamap if self._runtime else None
        )

    def canaries(self, names: tuple[str, ...], options: _Options) -> dict[str, str]:
        """The references that stand for those of the file, by resolver."""
        if options.canary is not None:
            return {names[0]: options.canary}
        if options.person is not None:
            return {names[0]: self._reference(self.registry.get(names[0]), options.person)}
        return {}

    def _reference(self, registered: Registered, person: str) -> str:
        """By what the system knows the person, made exactly as an erasure would make it."""
        if self._runtime is None:
            raise Refused(f"--person needs the data map; there is no {self._settings.datamap}.")
        plan = self._runtime.plan
        found = set()
        with self._db.read() as session:
            for kind in plan.data_map.people:
                subject = find_subject(session, plan.for_people(kind.name), person)
                if subject and (value := subject.refs.get(registered.ref)):
                    found.add(value)
        if len(found) != 1:
            how_many = "several kinds of people with" if found else "nobody with"
            said = f"the data map finds {how_many} this id and the reference '{registered.ref}'"
            raise Refused("The person can't be used.", problems=[Problem("--person", said)])
        return found.pop()

    def record(self, found: list[Checked]) -> None:
        """Keep the results. A database without tables is no reason to refuse the check that was made."""
        with self._db.begin() as session:
            try:
                require_fitting_schema(session.connection())
            except Unavailable as error:
                click.echo(f"The result was not kept. {error.message}", err=True)
                return
            for each in found:
                registered = self.registry.get(each.name)
                record_check(session, self._settings.keyring, registered, each, actor="cli")

    def close(self) -> None:
        self._db.dispose()


def refuse_unknown(registry: ResolverRegistry, names: tuple[str, ...]) -> None:
    known = [each.name for each in registry]
    for name in names:
        if name not in known:
            raise NotFound(f"No resolver is named '{name}'{suggest(name, known)}")


def _refuse_mixed(names: tuple[str, ...], options: _Options) -> None:
    one = options.canary is not None or options.person is not None or options.erase
    if one and len(names) != 1:
        raise click.UsageError("Name exactly one resolver with --canary, --person or --erase-canary.")
    if options.canary is not None and options.person is not None:
        raise click.UsageError("Use --canary or --person, not both.")
    if options.erase and options.person is not None:
        raise click.UsageError("--erase-canary never erases a person of your database; use --canary.")


def _confirm(registered: Registered, canaries: dict[str, str], options: _Options) -> None:
    """Ask before anything is deleted, and refuse where nothing could be."""
    if registered.retention_only or not registered.verifies:
        lacks = "can't be told to delete" if registered.retention_only else "has no read-back"
        raise Refused(f"'{registered.name}' {lacks}, so erasing its canary would prove nothing.")
    if registered.canary is None and not canaries:
        raise Refused(f"'{registered.name}' has no canary: set `canary`, or use --canary.")
    if not options.yes:
        click.confirm(f"This deletes the canary at {registered.name}. Continue?", abort=True)


def _table(checked: list[Checked]) -> Table:
    table = Table("resolver", "read-back", "what was found")
    for each in checked:
        # Text, not markup: square brackets in a sentence are just that.
        result = Text(each.proof, style=PROOF_COLOURS[each.proof])
        table.add_row(Text(each.name), result, Text(each.sentence))
    return table
