"""Vendored files are what VENDORED.md says they are."""

from __future__ import annotations

import hashlib
import re

import pytest

from effaced.core.paths import STATIC, TEMPLATES

VENDOR = STATIC / "vendor"
ROW = re.compile(
    r"^\| (?P<name>\S+) \| (?P<version>[\d.]+) \| .+? \| (?P<file>\S+) \| (?P<sha256>[0-9a-f]{64}) \|$", re.M
)
LISTED = [row.groupdict() for row in ROW.finditer((VENDOR / "VENDORED.md").read_text())]


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row["file"])
def test_a_vendored_file_is_unchanged(row: dict[str, str]) -> None:
    assert hashlib.sha256((VENDOR / row["file"]).read_bytes()).hexdigest() == row["sha256"]


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row["file"])
def test_a_vendored_file_comes_with_its_licence(row: dict[str, str]) -> None:
    assert (VENDOR / row["file"]).with_name("LICENSE").is_file()


def test_nothing_is_vendored_that_is_not_listed() -> None:
    scripts = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.suffix in (".js", ".css")}
    assert scripts == {row["file"] for row in LISTED}


def test_the_pages_use_the_listed_version_of_htmx() -> None:
    assert f"vendor/{LISTED[0]['file']}" in (TEMPLATES / "base.html").read_text()
    assert LISTED[0]["version"].startswith("2.0.")
