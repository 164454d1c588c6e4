"""`effaced datamap`: make a map, check it, and see what it does."""

from __future__ import annotations

import click

from effaced.cli.groups import LazyGroup

# In the order in which they are used.
COMMANDS = {
    "draft": (
        "datamap.draft",
        "Write a first data map from the live database: what can be guessed, with the reason on each line.",
    ),
    "check": (
        "datamap.check",
        "Compare the data map with the live database and list everything that does not fit.",
    ),
    "show": ("datamap.show", "Show what the data map says, table by table."),
    "diff": (
        "datamap.diff",
        "Say what the map NEW does that the map OLD does not, the gravest first.",
    ),
    "picture": (
        "datamap.picture",
        "Draw the data map as SVG: tables, links and what happens to each column.",
    ),
}


@click.group("datamap", cls=LazyGroup, lazy=COMMANDS)
def datamap() -> None:
    """The data map: which table holds what about whom, and what an erasure does to it."""
