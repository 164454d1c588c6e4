"""Groups of commands whose help tells each command's whole first sentence."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class Group(click.Group):
    """Its commands are in it already. click's own help would cut their sentences short."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.line(ctx, name)) for name in self.list_commands(ctx)])

    def line(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        assert command is not None
        return command.get_short_help_str(limit=400)


class LazyGroup(Group):
    """Per command, in the order of the help: the module it is in, and the first sentence of its own help.

    A module is imported when its command is used: help does not wait for any of them, a worker not for Flask.
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
        command: click.Command = getattr(import_module(f"effaced.cli.{module}"), cmd_name)
        return command

    def line(self, ctx: click.Context, name: str) -> str:
        return self.lazy[name][1]
