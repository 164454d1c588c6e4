"""A group of commands whose help is there at once, with each command's whole first sentence."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Per command, in the order of the help: the module it is in, and the first sentence of its own help.

    A module is imported when its command is used: help waits for none of them, and a worker not for Flask.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        module, _line = self.lazy[cmd_name]
        found = vars(import_module(f"effaced.cli.{module}")).values()
        return next(each for each in found if isinstance(each, click.Command) and each.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_module, line) in self.lazy.items()])
