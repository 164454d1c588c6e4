"""A company of many tables for `effaced bench plan`, with some of everything that a data map can say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_COLUMNS = {
    "mail": "varchar(80)", "name": "text", "born": "date", "phone": "varchar(40)", "note": "text",
    "amount": "numeric(10,2)", "state": "varchar(20)", "made": "date", "seen": "timestamp with time zone",
    "tries": "integer", "active": "boolean", "extra": "jsonb",
}  # fmt: skip
_HARMLESS = ("amount", "state", "made", "seen", "tries", "active")
_EVERY = 20
"""The tables are alike in turns of this many; most of them simply go."""


@dataclass(frozen=True)
class PlanCompany:
    """So many tables, with some of everything or, if `simple`, with rows that all simply go."""

    tables: int
    simple: bool = False

    def statements(self) -> Iterator[str]:
        """What makes them. Each points at one of those before it, three at each, with an index for that."""
        columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
        for number in range(self.tables):
            pointers = self._pointers(number)
            own = "".join(f"{name} integer REFERENCES bench_t{to}, " for name, to in pointers.items())
            yield f"CREATE TABLE bench_t{number} (id integer PRIMARY KEY, {own}{columns})"
            if "up" in pointers:
                yield f"CREATE INDEX ON bench_t{number} (up)"

    def map(self) -> str:
        said = ["version: 1", "subject: {table: bench_t0, key: id}", "identifiers: {email: mail}", "tables:"]
        for number in range(self.tables):
            pointers = self._pointers(number)
            columns = {"id": "not_personal", **dict.fromkeys(pointers, "delete"), **self._fates(number)}
            told = ", ".join(f"{name}: {fate}" for name, fate in columns.items())
            said.append(f"  bench_t{number}: {{{self._links(number, pointers)}columns: {{{told}}}}}")
        return "\n".join(said)

    def _is_address(self, number: int) -> bool:
        """Whether its rows go only while nobody else points at them; the next table does."""
        return not self.simple and number % _EVERY == 5 and number + 1 < self.tables

    def _pointers(self, number: int) -> dict[str, int]:
        found = {}
        if number and not self._is_address(number):
            # What is retained hangs on the person, who is anonymised; all else on what goes.
            found["up"] = 0 if self._turn(number) == "retained" else (number - 1) // 3
        if number and self._is_address(number - 1):
            found["at"] = number - 1
        if self._turn(number) == "mentions":
            found["by"] = 0
        return found

    def _turn(self, number: int) -> str:
        if self.simple:
            return "gone"
        turns = {
            6: "anonymised",
            9: "anonymised",
            11: "retained",
            13: "mentions",
            15: "documents",
            17: "texts",
        }
        return turns.get(number % _EVERY, "anonymised" if number == 0 else "gone")

    def _links(self, number: int, pointers: dict[str, int]) -> str:
        if self._is_address(number):
            return f"link: {{from: bench_t{number + 1}, on: {{id: at}}}}, "
        link = f"link: {{to: bench_t{pointers['up']}, on: {{up: id}}}}, " if number else ""
        if "by" in pointers:
            link += "mentions: {to: bench_t0, on: {by: id}, columns: {by: {anonymise: null}}}, "
        return link

    def _fates(self, number: int) -> dict[str, str]:
        fates = dict.fromkeys(_COLUMNS, "delete") | dict.fromkeys(_HARMLESS, "not_personal")
        match self._turn(number):
            case "anonymised":
                fates |= {"name": "{anonymise: fixed_text}", "mail": "{anonymise: random_email}"}
                fates |= {"born": "{anonymise: truncated_date, to: year}"}
            case "retained":
                fates |= {"up": "not_personal", "note": "{retain: {basis: law, until: made + 10 years}}"}
            case "documents":
                fates |= {
                    "extra": "{json: {$.name: delete, '$.contacts[*].mail': {anonymise: random_email}}}"
                }
            case "texts":
                fates |= {"note": "{scrub: all}"}
        return fates
