"""What is answered about the data map: what happens to which column, and how tables reach the person."""

from __future__ import annotations

from pydantic import Field

from effaced.api.models import Answer
from effaced.datamap.model.data_map import Action, DatePart, Strategy, Surrogate


class Treatment(Answer):
    """What happens to a cell."""

    strategy: Strategy
    surrogate: Surrogate | None = Field(description="What is written, where it is anonymised.")
    fixed: str | None = Field(description="The text or value that is written, where that is a fixed one.")
    truncated_to: DatePart | None = Field(description="What is left of a truncated date.")
    scrubbed: list[str] = Field(
        description="Identifiers or columns whose values are taken out of a text; none: all identifiers."
    )
    paths: list[PathTreatment] = Field(description="What happens where in a JSON document.")
    basis: str | None = Field(description="On what basis it is retained.")
    until: str | None = Field(
        description="When the retention ends: a day, or a column and a time.",
        examples=["end of year of issued_on + 10 years"],
    )
    then: Treatment | None = Field(description="What happens when the retention has ended.")
    reason: str | None = Field(description="Why the map says so.")


class PathTreatment(Answer):
    path: str
    treatment: Treatment


class MappedColumn(Treatment):
    """What happens to one column of a person's rows."""

    column: str
    description: str = Field(description="The same in words.", examples=["retain (tax law)"])


class LinkedColumns(Answer):
    """A column of the table, and the one of the other table that it equals."""

    column: str
    other: str


class LinkCondition(Answer):
    """Only rows whose column holds one of these."""

    column: str
    values: list[str | int | bool | None]


class MappedLink(Answer):
    """How rows belong to a person: they point at another table's rows, or these at them."""

    to: str
    on: list[LinkedColumns]
    pointed_at: bool = Field(
        description="The other table's rows point here. Where somebody else's do too, a row is not theirs."
    )
    where: list[LinkCondition]
    as_text: bool = Field(description="The two sides have different types and are compared as texts.")
    description: str = Field(description="The same in words.")


class Mention(Answer):
    """Rows that are not the person's but point at them: the row stays, and these columns change."""

    link: MappedLink
    columns: list[MappedColumn]


class MappedTable(Answer):
    table: str
    people: list[str] = Field(description="The kinds of people that it has one row for each of.")
    action: Action | None = Field(
        description="What happens to the person's rows; null where rows only mention people."
    )
    columns: list[MappedColumn]
    links: list[MappedLink]
    mentions: list[Mention]


class MappedIdentifier(Answer):
    """By what people are found."""

    kind: str
    column: str


class MappedReference(Answer):
    """How other systems know the person."""

    kind: str
    template: str = Field(examples=["cus_{crm_ref}"])
    columns: list[str]


class People(Answer):
    """One kind of people."""

    type: str = Field(description="As in a request's `subject.type`.")
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

    datamap_hash: str = Field(description="Of what the map says, not of how it is written.")
    schemas: list[str] = Field(description="PostgreSQL schemas that are looked at; none for the default.")
    people: list[People]
    tables: list[MappedTable]
    not_personal: list[str] = Field(description="Tables without personal data.")
    rectify: list[RectifiableCategory]


class MapFinding(Answer):
    line: int | None = Field(description="Of the map's file.")
    message: str


class DataMapCheck(Answer):
    """How the data map in force compares with the database now."""

    datamap_hash: str | None = Field(description="null if the map can't be read.")
    fits: bool = Field(description="Whether an erasure could be carried out by it.")
    file_differs: bool = Field(
        description="The map's file says something else by now, or can't be read: it counts after a restart."
    )
    problems: list[MapFinding]
    notes: list[MapFinding] = Field(description="What works, but somebody should look at.")
