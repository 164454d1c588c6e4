"""A person in a hurry: takes every suggestion that a draft makes."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Connection

SCHEMAS = Path(__file__).parent / "schemas"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

_COLUMN = re.compile(
    r"^(      \S.*?:(?: &\w+)?) +# .*\n        review: >-\n(?:          .*\n)*?          suggestion: (.*)\n",
    re.M,
)
_TABLES = re.compile(r"^review:\n((?:  .*\n)+)", re.M)


def decided(draft: str) -> str:
    """The draft with each suggestion in the place of its `review:`."""
    text = _COLUMN.sub(r"\1 \2\n", draft)
    found = _TABLES.search(text)
    if found is None:
        return text
    names = re.findall(r"^  (\S.*): >-$", found[1], re.M)
    text = text.replace(found[0], "")
    if "\nnot_personal:" not in text:
        text += "\nnot_personal:\n"
    return text + "".join(f"  - {name}\n" for name in names)


def run_script(connection: Connection, path: Path) -> None:
    """All statements of a file; none of ours has a semicolon at a line's end within a text."""
    script = re.sub(r"^--.*$", "", path.read_text(encoding="utf-8"), flags=re.M)
    for statement in re.split(r";\s*$", script, flags=re.M):
        if statement.strip():
            connection.exec_driver_sql(statement)
