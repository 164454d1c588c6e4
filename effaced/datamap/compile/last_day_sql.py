"""The last day of a row's retention in SQL, the same on both databases.

Months and years are counted by the calendar: a day that the last month does not have is its last one, so
29 February and ten years is 28 February. A cell that holds no day between the years 1 and 7999 has no end.
"""

from __future__ import annotations

from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import (
    ColumnElement,
    Date,
    FromClause,
    Integer,
    String,
    and_,
    case,
    cast,
    extract,
    func,
    literal,
    literal_column,
    type_coerce,
    types,
)

from effaced.datamap.model.last_day import Unit, Until

_FIRST, _LAST = date(1, 1, 1), date(7999, 12, 31)
_ISO = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"


def last_day(rows: FromClause, until: Until, dialect: str, zone: ZoneInfo) -> ColumnElement[date]:
    """The day until which a row is retained; NULL where its column holds no date."""
    if until.day is not None:
        return literal(until.day, Date())
    column = rows.c[until.column]
    return _sqlite(column, until) if dialect == "sqlite" else _postgres(column, until, zone)


def _postgres(column: ColumnElement[Any], until: Until, zone: ZoneInfo) -> ColumnElement[date]:
    # A moment's day is that of the place where deadlines end: at New Year it decides about a whole year.
    zoned = getattr(column.type, "timezone", False)
    local = func.timezone(literal(zone.key, String()), column) if zoned else column
    day = local if isinstance(column.type, types.Date) else cast(local, Date())
    within = and_(func.isfinite(day), day.between(literal(_FIRST, Date()), literal(_LAST, Date())))
    start: ColumnElement[Any] = case((within, day))
    if until.end_of_year:
        start = func.make_date(cast(extract("year", start), Integer()), 12, 31)
    step: ColumnElement[Any] = literal_column(f"INTERVAL '{until.count} {until.unit}'")
    return cast(start.op("+")(step), Date())


def _sqlite(column: ColumnElement[Any], until: Until) -> ColumnElement[date]:
    # SQLite reads numbers and bare times as days too; only what is written as one is taken for one.
    text = type_coerce(column, String())
    written = and_(func.typeof(text) == "text", text.op("GLOB", is_comparison=True)(literal(_ISO)))
    day = func.date(text)
    within = and_(written, day.between(_FIRST.isoformat(), _LAST.isoformat()))
    start: ColumnElement[Any] = case((within, day))
    if until.end_of_year:
        start = func.strftime("%Y-12-31", start)
    if until.unit in (Unit.DAYS, Unit.WEEKS):
        days = until.count * (7 if until.unit is Unit.WEEKS else 1)
        return type_coerce(func.date(start, f"+{days} days"), Date())
    # SQLite's own '+1 months' makes 3 March of 31 January.
    months = until.count * (12 if until.unit is Unit.YEARS else 1)
    first = func.date(start, "start of month", f"+{months} months")
    further = cast(cast(func.strftime("%d", start), Integer()) - 1, String()).concat(" days")
    return type_coerce(func.min(func.date(first, further), func.date(first, "+1 month", "-1 day")), Date())
