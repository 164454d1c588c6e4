"""Which dead letters a command is about: ids or filters; and the options that commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar
from uuid import UUID

import click
from sqlalchemy.orm import Session

from effaced.accounts.officers import find_officer
from effaced.core.config import Settings
from effaced.core.db import Database
from effaced.core.db.schema_level import open_database
from effaced.core.errors import NotFound
from effaced.deadletters.arguments import as_uuid
from effaced.deadletters.read import DeadLetterFilter
from effaced.deadletters.rules import OPEN, sla_from_hours
from effaced.model import DeadLetterDomain, DeadLetterStatus
from effaced.requests.read import find_by_ref

F = TypeVar("F", bound=Callable[..., Any])
ACTOR = "cli"
ALL = "all"
JSON = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
YES = click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
REASON = click.option("--reason", required=True, help="Why; kept as a note in the audit trail.")

_OPTIONS = [
    click.option(
        "--status",
        "statuses",
        multiple=True,
        type=click.Choice([ALL, *(each.value for each in DeadLetterStatus)]),
        help="Only with this status; can be repeated. Without it: those that need a decision; `list` also "
        "shows those given up.",
    ),
    click.option(
        "--domain",
        type=click.Choice([each.value for each in DeadLetterDomain]),
        help="Only of this domain.",
    ),
    click.option("--resolver", help="Only of this resolver; for messages, of this target."),
    click.option("--error", help="Only with this error class, e.g. TransientFailure."),
    click.option("--code", help="Only with this error code, e.g. http_400."),
    click.option("--request", "request_name", help="Only of this request, by ref or id."),
    click.option("--assigned-to", help="Only those assigned to this officer, by e-mail address."),
    click.option("--unassigned", is_flag=True, help="Only those assigned to nobody."),
    click.option("--late", is_flag=True, help="Only those that have been open for too long."),
    click.option("--expired", is_flag=True, help="Only those whose retention has ended (`expires_at`)."),
]


def filters(command: F) -> F:
    """The options that choose dead letters."""
    return reduce(lambda inner, option: option(inner), reversed(_OPTIONS), command)


def chosen(
    session: Session,
    settings: Settings,
    given: dict[str, Any],
    *,
    default: tuple[DeadLetterStatus, ...] = OPEN,
) -> DeadLetterFilter:
    """The filter that the options make; `default` are the statuses if none is given.

    Refuses an unknown officer or request.
    """
    words = given["statuses"]
    statuses = () if ALL in words else tuple(DeadLetterStatus(each) for each in words) or default
    return DeadLetterFilter(
        statuses=statuses,
        domain=DeadLetterDomain(given["domain"]) if given["domain"] else None,
        resolver=given["resolver"],
        error=given["error"],
        code=given["code"],
        request_id=_request(session, given["request_name"]),
        assigned_to=officer_id(session, given["assigned_to"]) if given["assigned_to"] else None,
        unassigned=given["unassigned"],
        late=given["late"],
        expired=given["expired"],
        sla=sla_from_hours(settings.dead_letter_hours),
    )


def dead_letter_ids(values: tuple[str, ...]) -> list[UUID]:
    """The ids that the arguments name, each once; refuses what is not an id."""
    ids = []
    for value in values:
        known = as_uuid(value)
        if known is None:
            raise click.UsageError("An id of a dead letter looks like 01890a5d-ac96-774b-bcce-b302099a8057.")
        ids.append(known)
    return list(dict.fromkeys(ids))


def officer_id(session: Session, email: str) -> UUID:
    found = find_officer(session, email)
    if found is None or not found.active:
        raise NotFound("No active officer has this e-mail address. `effaced officer list` shows all of them.")
    return found.id


def _request(session: Session, name: str | None) -> UUID | None:
    if not name:
        return None
    if known := as_uuid(name):
        return known
    found = find_by_ref(session, name)
    if found is None:
        raise NotFound("No request has this ref.")
    return found.id


@contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    database = open_database(settings.database_url)
    try:
        yield database
    finally:
        database.dispose()
