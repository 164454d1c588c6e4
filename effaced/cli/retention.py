"""`effaced retention ...`: what erasures have left under `retain`, what has come due, and erasing that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from effaced.cli.terminal import terminal
from effaced.core.config import Settings
from effaced.core.errors import NotFound
from effaced.requests.read import find_by_ref, refs_of
from effaced.requests.retention import RetentionState
from effaced.retention.read import (
    RetentionLine,
    count_due,
    count_kept,
    list_due,
    list_kept,
    retention_json,
)
from effaced.retention.run import RequestResult, count_due_requests, iterate_due_requests
from effaced.runtime import Runtime

_ACTOR = "cli"
_SHOWN = 1_000
_JSON = click.option("--json", "as_json", is_flag=True, help="For programs.")
_LIMIT = click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1, _SHOWN), help="How many."
)
SAID = {
    RetentionState.KEPT: "nothing has come due",
    RetentionState.WAITING: "waits for rows that point at it",
    RetentionState.IN_USE: "the person's key is in use again: if by the same person, request another erasure",
    RetentionState.NOT_RETAINED: "the map retains nothing here any more: have the person erased once more",
    RetentionState.TABLE_GONE: "the map has no such table any more",
    RetentionState.UNREADABLE: "can't be read: a key is missing, or people have another key in the map now",
}


@contextmanager
def _opened(settings: Settings) -> Iterator[Runtime]:
    runtime = Runtime(settings)
    try:
        yield runtime
    finally:
        runtime.db.dispose()


@click.command("list")
@_LIMIT
@_JSON
@click.pass_obj
def list_command(settings: Settings, limit: int, as_json: bool) -> None:
    """Show what is kept, of which request, why, and when the first of it comes due."""
    with _opened(settings) as runtime, runtime.db.read() as session:
        lines = list_kept(session, runtime.retention_on(session), limit=limit).items
        total = count_kept(session)
    if as_json:
        click.echo(json.dumps([retention_json(each) for each in lines], indent=2))
        return
    if not lines:
        click.echo("Nothing is kept under retain.")
        return
    table = Table("request", "table", "rows", "without a date", "why", "until", "first due")
    for each in lines:
        due = each.first_due.isoformat() if each.first_due else "nobody knows"
        table.add_row(
            *map(Text, (each.ref, each.table, f"{each.rows:,}", f"{each.undated:,}", *_why(each), due))
        )
    _print(table, len(lines), total)


@click.command()
@_LIMIT
@_JSON
@click.pass_obj
def due(settings: Settings, limit: int, as_json: bool) -> None:
    """Show what is past its retention period, counted now by the map in force. Changes nothing."""
    with _opened(settings) as runtime, runtime.db.read() as session:
        plan = runtime.retention_on(session)
        lines = list_due(session, runtime.keyring, plan, limit=limit).items
        total = count_due(session, plan.today)
    if as_json:
        click.echo(json.dumps([retention_json(each) for each in lines], indent=2))
        return
    if not lines:
        click.echo("Nothing has come due.")
        return
    _print(_due_table(lines), len(lines), total)


@click.command()
@click.option("--request", "refs", metavar="REF", multiple=True, help="Of this request; may be repeated.")
@click.option("--all-due", is_flag=True, help="Of everybody.")
@click.option("--reason", required=True, help="Why; it is kept in the audit trail's notes.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@_JSON
@click.pass_obj
def erase(
    settings: Settings, refs: tuple[str, ...], all_due: bool, reason: str, yes: bool, as_json: bool
) -> None:
    """Erase what need not be kept any more, in short transactions. Exits with 1 if a request fails.

    It can be stopped and run again: what is done is done.
    """
    if bool(refs) == all_due:
        raise click.UsageError("Say --request and a ref, or --all-due.")
    with _opened(settings) as runtime:
        ids = _chosen(runtime, refs)
        with runtime.db.read() as session:
            # Each of them is counted, which takes its time and is for whoever is asked.
            plan, most = runtime.retention_on(session), 1 if yes else _SHOWN
            shown = list_due(session, runtime.keyring, plan, only=ids, limit=most).items
            number = len(ids) if ids is not None else count_due_requests(session, plan)
        if not shown:
            click.echo("[]" if as_json else "Nothing has come due.")
            return
        if not yes:
            _ask(number, shown)
        failed = _carry_out(runtime, ids, number, reason, as_json=as_json)
    if failed:
        raise click.exceptions.Exit(1)


def _carry_out(
    runtime: Runtime, ids: Sequence[UUID] | None, number: int, reason: str, *, as_json: bool
) -> bool:
    """Say what became of each request as it is done, and how far a long one is.

    Returns whether one failed.
    """
    failed, first = False, True

    def on_progress(request_id: UUID, rows: int, of: int) -> None:
        if as_json:
            line = {"request": _ref(runtime, request_id), "rows": rows, "of": of}
            click.echo(json.dumps(line), err=True)
        progress.update(long, description=_ref(runtime, request_id), total=of, completed=rows, visible=True)

    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=as_json or not console.is_terminal,
        transient=True,
    )
    with progress:
        all_of_them = progress.add_task("requests", total=number)
        long = progress.add_task("", visible=False)
        chosen = iterate_due_requests(runtime.db, runtime.retention) if ids is None else ids
        for each in runtime.ender.end_requests(chosen, actor=_ACTOR, reason=reason, on_progress=on_progress):
            ref = _ref(runtime, each.request_id)
            if as_json:
                click.echo(("[\n" if first else ",\n") + json.dumps(_plain(ref, each)), nl=False)
            else:
                click.echo(f"{ref}: {_describe_result(each)}")
            progress.advance(all_of_them)
            progress.update(long, visible=False)
            failed, first = failed or each.error is not None, False
    if as_json:
        click.echo("[]" if first else "\n]")
    return failed


def _ref(runtime: Runtime, request_id: UUID) -> str:
    with runtime.db.read() as session:
        return refs_of(session, [request_id])[request_id]


def _chosen(runtime: Runtime, refs: tuple[str, ...]) -> list[UUID] | None:
    """The requests that were named; None for everybody's."""
    if not refs:
        return None
    with runtime.db.read() as session:
        found = [find_by_ref(session, ref) for ref in refs]
    if not all(found):
        raise NotFound("--request: no request has this ref.")
    return list(dict.fromkeys(each.id for each in found if each))


def _ask(number: int, lines: Sequence[RetentionLine]) -> None:
    Console(stderr=True).print(_due_table(lines))
    deleted, changed = (
        sum(getattr(each.ended, name) for each in lines if each.standing is RetentionState.DUE)
        for name in ("deleted", "changed")
    )
    more = " or more" if len(lines) == _SHOWN else ""
    click.confirm(
        f"Of {number:,} {'request' if number == 1 else 'requests'} {deleted:,}{more} rows will be deleted"
        f" and {changed:,}{more} anonymised. Go on?",
        abort=True,
        err=True,
    )


def _due_table(lines: Sequence[RetentionLine]) -> Table:
    table = Table("request", "table", "since", "delete", "anonymise", "why", "until", "remark")
    for each in lines:
        said = SAID.get(each.standing, "") if each.standing else ""
        if each.erasing:
            done, of = each.erasing
            said = f"being erased: {done:,} of {of:,} rows" if of else "being erased"
        elif each.standing is RetentionState.DUE:
            said = f"could not be erased ({each.error})" if each.error else ""
        ended = (each.ended.deleted, each.ended.changed) if each.ended else (0, 0)
        since = each.first_due.isoformat() if each.first_due else ""
        cells = (each.ref, each.table, since, *(f"{number:,}" for number in ended), *_why(each), said)
        table.add_row(*map(Text, cells))
    return table


def _why(line: RetentionLine) -> tuple[str, str]:
    bases, untils = zip(*line.reasons, strict=True) if line.reasons else ((), ())
    return "\n".join(dict.fromkeys(bases)), "\n".join(dict.fromkeys(each or "-" for each in untils))


def _describe_result(result: RequestResult) -> str:
    done = ", ".join(
        f"{what.table}: {what.deleted:,} deleted, {what.changed:,} anonymised" for what in result.done
    )
    if result.error:
        return f"{done}. {result.error}" if done else result.error
    return done or "nothing was left to erase."


def _plain(ref: str, result: RequestResult) -> dict[str, object]:
    return {
        "request": ref,
        "tables": [
            {"table": each.table, "deleted": each.deleted, "anonymised": each.changed} for each in result.done
        ],
        "error": result.error,
    }


def _print(table: Table, shown: int, total: int) -> None:
    terminal().print(table)
    if shown < total:
        click.echo(f"{shown:,} of {total:,}; see --limit.")
