"""What templates can call: words, times, numbers, and who is signed in."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from flask import Flask, request

from effaced.console import times
from effaced.console.current import runtime
from effaced.console.theme import chosen_theme
from effaced.console.words import advice, badge, label, move
from effaced.core import clock
from effaced.core.paging import COUNT_CAP
from effaced.model import Role

# htmx would keep page HTML, with people's data, in the browser's storage, and would evaluate attributes.
HTMX_CONFIG = {
    "allowEval": False,
    "allowScriptTags": False,
    "includeIndicatorStyles": False,
    "historyCacheSize": 0,
    "historyRestoreAsHxRequest": False,
    "refreshOnHistoryMiss": True,
}


def register(app: Flask) -> None:
    app.jinja_env.filters.update(
        absolute=absolute,
        relative=relative,
        iso=iso,
        day=day,
        until=until,
        number=number,
        plural=plural,
        exact=exact,
        rows=rows,
        short=short,
        countdown=countdown,
        percent=percent,
        milliseconds=milliseconds,
        duration=duration,
    )
    app.jinja_env.globals.update(
        badge=badge,
        label=label,
        advice=advice,
        move=move,
        deadline=deadline,
        htmx_config=HTMX_CONFIG,
        Role=Role,
    )
    app.context_processor(_template_context)


def absolute(value: datetime) -> str:
    return times.absolute(value, runtime().settings.zone)


def relative(value: datetime) -> str:
    return times.relative(value, clock.now())


def countdown(value: datetime) -> str:
    return times.countdown(value, clock.now())


def percent(share: float) -> str:
    """98.5 %; never 100 % while something failed, nor 0 % while something went well."""
    rounded = round(share * 100, 1)
    rounded = min(rounded, 99.9) if share < 1 else rounded
    rounded = max(rounded, 0.1) if share > 0 else rounded
    return f"{rounded:g} %"


def milliseconds(value: float) -> str:
    """340 ms, 2.4 s"""
    return f"{value:.0f} ms" if value < 1_000 else f"{value / 1_000:.1f} s"


def duration(value: timedelta) -> str:
    """45 s, 4 min 10 s"""
    return times.duration(value.total_seconds())


def iso(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def deadline(due: datetime, closed: datetime | None = None) -> times.Deadline:
    return times.deadline(due, clock.now(), runtime().settings.zone, closed=closed)


def day(value: date | str) -> str:
    return times.day(date.fromisoformat(value) if isinstance(value, str) else value)


def until(value: str) -> str:
    """The end of a retention: a day, or the rule by which it is counted."""
    try:
        return day(value)
    except ValueError:
        return value


def number(value: int) -> str:
    """1,234; a count that was cut off says so."""
    return f"{COUNT_CAP:,}+" if value > COUNT_CAP else f"{value:,}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """3 rows, 1 row"""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def exact(count: int) -> str:
    """60,012: counted to the last one, unlike the length of a list."""
    return f"{count:,}"


def rows(count: int) -> str:
    """60,012 rows"""
    return f"{exact(count)} row{'' if count == 1 else 's'}"


def short(value: UUID) -> str:
    """The end of an id: the beginning of ours is the time and the same for neighbours."""
    return value.hex[-8:]


def _template_context() -> dict[str, Any]:
    return {
        "theme": chosen_theme(),
        "zone_name": runtime().settings.time_zone,
        "page_name": (request.endpoint or "").split(".")[1:2],
    }
