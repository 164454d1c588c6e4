"""Which tables and columns hold data of people, and what happens to each in an erasure.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from effaced.client.answers import Answer
from effaced.client.exchange import Call
from effaced.client.runners import M, Resource, operation


class LinkCondition(Answer):
    """Only rows whose column holds one of these."""

    column: str
    values: list[str | int | bool | None]


class LinkedColumns(Answer):
    """A column of the table, and the one of the other table that it equals."""

    column: str
    other: str


class Treatment(Answer):
    """What happens to a cell."""

    strategy: str
    surrogate: str | None
    """What is written, where it is anonymised."""

    fixed: str | None
    """The text or value that is written, where that is a fixed one."""

    truncated_to: str | None
    """What is left of a truncated date."""

    scrubbed: list[str]
    """Identifiers or columns whose values are taken out of a text; none: all identifiers."""

    paths: list[PathTreatment]
    """What happens where in a JSON document."""

    basis: str | None
    """On what basis it is retained."""

    until: str | None
    """When the retention ends: a day, or a column and a time."""

    then: Treatment | None
    """What happens when the retention has ended."""

    reason: str | None
    """Why the map says so."""


class PathTreatment(Answer):
    path: str
    treatment: Treatment


class MappedColumn(Answer):
    """What happens to one column of a person's rows."""

    strategy: str
    surrogate: str | None
    """What is written, where it is anonymised."""

    fixed: str | None
    """The text or value that is written, where that is a fixed one."""

    truncated_to: str | None
    """What is left of a truncated date."""

    scrubbed: list[str]
    """Identifiers or columns whose values are taken out of a text; none: all identifiers."""

    paths: list[PathTreatment]
    """What happens where in a JSON document."""

    basis: str | None
    """On what basis it is retained."""

    until: str | None
    """When the retention ends: a day, or a column and a time."""

    then: Treatment | None
    """What happens when the retention has ended."""

    reason: str | None
    """Why the map says so."""

    column: str
    description: str
    """The same in words."""


class MappedIdentifier(Answer):
    """By what people are found."""

    kind: str
    column: str


class MappedLink(Answer):
    """How rows belong to a person: they point at another table's rows, or these at them."""

    to: str
    on: list[LinkedColumns]
    pointed_at: bool
    """The other table's rows point here. Where somebody else's do too, a row is not theirs."""

    where: list[LinkCondition]
    as_text: bool
    """The two sides have different types and are compared as texts."""

    description: str
    """The same in words."""


class MappedReference(Answer):
    """How other systems know the person."""

    kind: str
    template: str
    columns: list[str]


class Mention(Answer):
    """Rows that are not the person's but point at them: the row stays, and these columns change."""

    link: MappedLink
    columns: list[MappedColumn]


class MappedTable(Answer):
    table: str
    people: list[str]
    """The kinds of people that it has one row for each of."""

    action: str | None
    """What happens to the person's rows; null where rows only mention people."""

    columns: list[MappedColumn]
    links: list[MappedLink]
    mentions: list[Mention]


class People(Answer):
    """One kind of people."""

    type: str
    """As in a request's `subject.type`."""

    table: str
    key: list[str]
    identifiers: list[MappedIdentifier]
    refs: list[MappedReference]


class TableColumn(Answer):
    table: str
    column: str


class RectifiableCategory(Answer):
    """Data that can be corrected."""

    category: str
    columns: list[TableColumn]


class DataMap(Answer):
    """The data map in force."""

    datamap_hash: str
    """Of what the map says, not of how it is written."""

    schemas: list[str]
    """PostgreSQL schemas that are looked at; none for the default."""

    people: list[People]
    tables: list[MappedTable]
    not_personal: list[str]
    """Tables without personal data."""

    rectify: list[RectifiableCategory]


class MapFinding(Answer):
    line: int | None
    """Of the map's file."""

    message: str


class DataMapCheck(Answer):
    """How the data map in force compares with the database now."""

    datamap_hash: str | None
    """null if the map can't be read."""

    fits: bool
    """Whether an erasure could be carried out by it."""

    file_differs: bool
    """The map's file says something else by now, or can't be read: it counts after a restart."""

    problems: list[MapFinding]
    notes: list[MapFinding]
    """What works, but somebody should look at."""


class DataMapApi(Resource[M]):
    """Which tables and columns hold data of people, and what happens to each in an erasure."""

    @operation
    def get(self) -> Call[DataMap]:
        """The data map in force.

        Needs the scope `operate:read`.
        """
        return Call("get_data_map", "GET", "/api/v1/datamap", DataMap)

    @operation
    def check(self) -> Call[DataMapCheck]:
        """Compare the data map in force with the live database.

        The answer is 200 also where there are problems, since looking is what was asked for.

        Needs the scope `operate:read`.
        """
        return Call("check_data_map", "GET", "/api/v1/datamap/check", DataMapCheck)
