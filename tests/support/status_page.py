"""Writes the table of a request's transitions into docs/reference/requests.md."""

from __future__ import annotations

from pathlib import Path

from effaced.requests.status import TRANSITIONS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "requests.md"
BEGIN, END = "<!-- generated from effaced/requests/status.py -->", "<!-- end of what is generated -->"


def table() -> str:
    """The transitions, in the order in which the code has them."""
    rows = [
        f"| {_from(each.source)} | {each.event} | `{each.target}` | {_who(each.who)} |"
        for each in TRANSITIONS
    ]
    return "\n".join(["| from | what happens: the request is | to | who |", "|---|---|---|---|", *rows])


def with_table(page: str) -> str:
    """The page with the table as it is now between the two marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def _from(source: str | None) -> str:
    return f"`{source}`" if source else "new"


def _who(who: tuple[str, ...]) -> str:
    return ", ".join(each.replace("_", " ") for each in who)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
