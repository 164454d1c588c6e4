"""Where tables are printed: as wide as the terminal; into a pipe or a file in full, one row a line."""

from __future__ import annotations

from rich.console import Console

_UNLIMITED = 10_000


def terminal() -> Console:
    """rich takes a pipe for a terminal of 80 columns, and would cut off ids and names."""
    console = Console()
    return console if console.is_terminal else Console(width=_UNLIMITED)
