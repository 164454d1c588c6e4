"""`effaced --help`: true, and there at once."""

from __future__ import annotations

import re
import subprocess
import sys

import click
import pytest

from effaced.cli.main import COMMANDS, cli

SLOW = {"sqlalchemy", "pydantic", "flask", "rq", "structlog"}
ASK = f"""
import sys
from effaced.cli.main import cli
cli.main(["--help"], standalone_mode=False)
print(*sorted({SLOW} & sys.modules.keys()), file=sys.stderr)
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_line_is_the_first_sentence_of_its_own_help(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    own = re.match(r".+?\.(?=\s|$)", command.help or "", re.DOTALL)
    assert own is not None
    assert COMMANDS[name][1] == " ".join(own[0].split())


def test_help_shows_every_command_and_imports_none() -> None:
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert re.findall(r"^  (\w+) {2,}\w", done.stdout.split("Commands:")[1], re.MULTILINE) == list(COMMANDS)
    assert done.stderr.strip() == ""
