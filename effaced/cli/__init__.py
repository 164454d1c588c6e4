"""`effaced ...`: one module per group of commands."""

from effaced.cli.main import main

__all__ = ["main"]
