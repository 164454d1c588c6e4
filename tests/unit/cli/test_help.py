"""`effaced --help`: true, and there at once."""

from __future__ import annotations

import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from effaced.cli.datamap.group import datamap
from effaced.cli.groups import LazyGroup
from effaced.cli.main import COMMANDS, cli

LAZY = [(group, name) for group in (cli, datamap) for name in group.lazy]
SLOW = {"sqlalchemy", "pydantic", "flask", "rq", "structlog"}
ASK = f"""
import sys
from effaced.cli.main import cli
sys.argv += ["--help"]
cli.main(standalone_mode=False)
print(*sorted({SLOW} & sys.modules.keys()), file=sys.stderr)
"""


@pytest.mark.parametrize(("group", "name"), LAZY)
def test_a_commands_line_is_the_first_sentence_of_its_own_help(group: LazyGroup, name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    own = re.match(r".+?\.(?=\s|$)", command.help or "", re.DOTALL)
    assert own is not None
    assert group.lazy[name][1] == " ".join(own[0].split())


@pytest.mark.parametrize(("words", "group"), [((), cli), (("datamap",), datamap)])
def test_help_shows_every_command_and_imports_none(words: tuple[str, ...], group: LazyGroup) -> None:
    done = subprocess.run([sys.executable, "-c", ASK, *words], capture_output=True, text=True, check=True)
    shown = re.findall(r"^  (\w+) {2,}\w", done.stdout.split("Commands:")[1], re.MULTILINE)
    assert shown == list(group.lazy)
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_cuts_no_sentence_short(name: str) -> None:
    done = CliRunner().invoke(cli, [name, "--help"], prog_name="effaced")
    assert "..." not in done.stdout.partition("Commands:")[2]
