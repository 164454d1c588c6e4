"""A theme is a matter of colours: what is checked of a page in one theme holds in the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from effaced.core.paths import STATIC

STYLES = sorted((STATIC / "css").glob("*.css"))
BY_THEME = re.compile(r"[^{}]*data-theme[^{}]*\{([^}]*)\}")


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.name)
def test_a_theme_sets_its_colour_scheme_and_nothing_else(path: Path) -> None:
    style = path.read_text(encoding="utf-8")
    assert "prefers-color-scheme" not in style
    assert all(re.fullmatch(r"\s*color-scheme: \w+;\s*", rules) for rules in BY_THEME.findall(style))
    assert style.count("data-theme") == len(BY_THEME.findall(style))
