"""`effaced resolver ...`: what is connected, and does it answer as configured?"""

from __future__ import annotations

import asyncio

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from effaced.config import Settings
from effaced.errors import NotFound
from effaced.resolvers.check import Checked, Finding, check_all
from effaced.resolvers.load import load_registry
from effaced.resolvers.protocols import RectifyingResolver, RetentionOnlyResolver, VerifyingResolver
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.resolvers.settings import suggest
from effaced.runtime import Runtime

_COLOURS = {Finding.OK: "green", Finding.UNSURE: "yellow", Finding.PROBLEM: "red"}


@click.group("resolver")
def resolver() -> None:
    """The external systems of resolvers.yaml."""


@resolver.command("list")
@click.pass_obj
def list_resolvers(settings: Settings) -> None:
    """Show every configured resolver and what it can do."""
    registry = load_registry(settings.resolvers)
    if not len(registry):
        click.echo(f"No resolvers in {settings.resolvers}: erasures end with the company's own database.")
        return
    table = Table("name", "kind", "reference", "can", "timeout", "at once", "per second")
    for each in registry:
        limits = each.limits
        rate = "-" if limits.rate_per_second is None else f"{limits.rate_per_second:g}"
        timeout = f"{limits.timeout.total_seconds():g} s"
        table.add_row(
            each.name, each.kind, each.ref, _abilities(each), timeout, str(limits.concurrency), rate
        )
    Console().print(table)


@resolver.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.pass_context
def check(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Ask each system for its canary, which must be there, and for nobody. Deletes nothing.

    Exits with 1 if there is a problem.
    """
    settings: Settings = ctx.obj
    registry = _as_the_workers_load_it(settings)
    _refuse_unknown(registry, names)
    if not len(registry):
        click.echo(f"No resolvers in {settings.resolvers}, so there is nothing to check.")
        return
    checked = asyncio.run(check_all(registry, names))
    Console().print(_table(checked))
    if any(each.finding is Finding.PROBLEM for each in checked):
        ctx.exit(1)


def _as_the_workers_load_it(settings: Settings) -> ResolverRegistry:
    """With the data map's references and the lease in mind, so that what passes here also starts."""
    if not settings.datamap.exists():
        return load_registry(settings.resolvers)
    runtime = Runtime(settings)
    try:
        return runtime.registry
    finally:
        runtime.db.dispose()


def _refuse_unknown(registry: ResolverRegistry, names: tuple[str, ...]) -> None:
    known = [each.name for each in registry]
    for name in names:
        if name not in known:
            raise NotFound(f"No resolver is named '{name}'{suggest(name, known)}")


def _table(checked: list[Checked]) -> Table:
    table = Table("resolver", "result", "what was found")
    for each in checked:
        # Text, not markup: square brackets in a sentence are just that.
        result = Text(each.finding, style=_COLOURS[each.finding])
        table.add_row(Text(each.name), result, Text(each.sentence))
    return table


def _abilities(each: Registered) -> str:
    abilities = {
        "erase": not isinstance(each.resolver, RetentionOnlyResolver),
        "expire": isinstance(each.resolver, RetentionOnlyResolver),
        "rectify": isinstance(each.resolver, RectifyingResolver),
        "verify": isinstance(each.resolver, VerifyingResolver),
    }
    return ", ".join(name for name, can in abilities.items() if can)
