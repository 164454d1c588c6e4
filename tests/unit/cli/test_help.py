"""`effaced --help`: true, and there at once."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from effaced.cli.lazy_group import LazyGroup
from effaced.cli.main import cli

HEAVY = {"sqlalchemy", "pydantic", "flask", "rq", "redis", "psycopg", "structlog", "httpx", "rich", "yaml"}
ASK = f"""
import sys
from effaced.cli.main import cli
sys.argv += ["--help"]
cli.main(standalone_mode=False)
print(*sorted({HEAVY} & sys.modules.keys()), file=sys.stderr)
"""


def groups(group: click.Command = cli, *above: str) -> Iterator[tuple[tuple[str, ...], LazyGroup]]:
    """Every group, with what is typed to reach it."""
    if not isinstance(group, click.Group):
        return
    assert isinstance(group, LazyGroup), f"effaced {' '.join(above)} imports its commands for its help"
    yield above, group
    for name in group.lazy:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield from groups(command, *above, name)


GROUPS = [pytest.param(*each, id=" ".join(("effaced", *each[0]))) for each in groups()]


@pytest.mark.parametrize(("words", "group"), GROUPS)
def test_a_commands_line_is_the_first_sentence_of_its_own_help(
    words: tuple[str, ...], group: LazyGroup
) -> None:
    for name, (_module, line) in group.lazy.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        own = re.match(r".+?\.(?=\s|$)", command.help or "", re.DOTALL)
        assert own is not None, f"effaced {' '.join(words)} {name} has no help"
        assert line == " ".join(own[0].split())


@pytest.mark.parametrize(("words", "group"), GROUPS)
def test_help_shows_every_command_and_imports_none(words: tuple[str, ...], group: LazyGroup) -> None:
    """So it takes no second: what effaced is built on is what is slow to import."""
    done = subprocess.run([sys.executable, "-c", ASK, *words], capture_output=True, text=True, check=True)
    shown = re.findall(r"^  ([\w-]+) {2,}\w", done.stdout.split("Commands:")[1], re.MULTILINE)
    assert shown == list(group.lazy)
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(("words", "group"), GROUPS)
def test_help_cuts_no_sentence_short(words: tuple[str, ...], group: LazyGroup) -> None:
    done = CliRunner().invoke(cli, [*words, "--help"], prog_name="effaced")
    assert "..." not in done.stdout.partition("Commands:")[2]
