"""The how-to for authors, followed to the letter: its files, its commands, what it says they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-resolver.md"
FILES = re.findall(r"^\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The author's new folder, with all files of the page."""
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run commands in the author's folder. What they install goes into a folder beside the environment."""
    site = folder / "site"
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("EFFACED_", "PYTEST_"))}
    environ = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(site),
        "PIP_TARGET": str(site),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the opposite of what it says
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "80",
    }
    return subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env=ours | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_everything_it_says_to_do_does_what_it_says(folder: Path) -> None:
    lines = "".join(CONSOLE).splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    printed = [line for line in lines if not line.startswith("$ ")]
    assert commands
    assert printed
    done = run(folder, "\n".join(commands))
    assert done.returncode == 0, done.stdout
    # Three dots stand for what is different each time.
    patterns = [re.escape(line).replace(re.escape("..."), ".+") for line in printed]
    missing = [each for each in patterns if not re.search(f"^{each}$", done.stdout, re.MULTILINE)]
    assert missing == [], done.stdout


def test_what_it_says_to_break_is_found(folder: Path) -> None:
    resolver = folder / "acme_doors.py"
    resolver.write_text(re.sub(r"^.*PRAGMA.*\n", "", resolver.read_text(), flags=re.MULTILINE))
    done = run(folder, "pytest -q -k 'refusal or removes'")
    failed = re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
    assert failed == ["test_a_refusal_is_a_resolver_error"], done.stdout
