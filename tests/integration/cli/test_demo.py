"""`effaced demo` where there is nothing to drill on."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from effaced.cli.groups import demo
from effaced.core.errors import Unavailable
from effaced.demo.running import find_running, write_running_file


def test_without_a_demo_it_says_how_to_start_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(demo, ["outage", "payment", "--data", str(tmp_path)])
    assert isinstance(result.exception, Unavailable)
    assert "make run" in str(result.exception)


def test_a_running_demo_is_found_by_its_folder_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    environ = {"EFFACED_DEMO_VENDORS": "http://127.0.0.1:1", "HOME": "/nowhere"}
    path = write_running_file(tmp_path / "demo", "http://127.0.0.1:8000", environ)
    assert path.stat().st_mode & 0o077 == 0
    found = find_running(tmp_path)
    assert (found.console, found.vendors) == ("http://127.0.0.1:8000", "http://127.0.0.1:1")
    assert "HOME" not in found.environ


@pytest.mark.parametrize("text", ["", "{}", "[]"])
def test_a_trace_that_can_t_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "running.json").write_text(text)
    with pytest.raises(Unavailable, match=r"running\.json"):
        find_running(tmp_path)
