"""What templates may hold: nothing the content security policy would block, and fragments that fit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from effaced.core.paths import STATIC, TEMPLATES

ALL = sorted(TEMPLATES.rglob("*.html"))
FRAGMENTS = [path for path in ALL if path.name.startswith("_")]


def name(path: Path) -> str:
    return str(path.relative_to(TEMPLATES))


@pytest.mark.parametrize("path", ALL, ids=name)
def test_a_template_has_no_inline_style_script_or_handler(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\sstyle\s*=|<style|\shx-on|\son[a-z]+\s*=|javascript:", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)


@pytest.mark.parametrize("path", ALL, ids=name)
def test_a_template_switches_escaping_nowhere_off(path: Path) -> None:
    assert not re.search(r"\|\s*safe\b|autoescape", path.read_text())


@pytest.mark.parametrize("path", ALL, ids=name)
def test_every_form_that_is_posted_carries_its_token(path: Path) -> None:
    for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", path.read_text(), re.DOTALL):
        assert "csrf" in form


@pytest.mark.parametrize("path", FRAGMENTS, ids=name)
def test_a_fragment_extends_nothing_and_is_part_of_a_page(path: Path) -> None:
    assert "{% extends" not in path.read_text()
    included = {found for page in ALL for found in re.findall(r"{% include \"([^\"]+)\"", page.read_text())}
    made_of = set(re.findall(r"{% include \"([^\"]+)\"", path.read_text()))
    # `_live.html` is itself made of two fragments that the page includes.
    assert name(path) in included or (made_of and made_of <= included)


@pytest.mark.parametrize("path", sorted(STATIC.glob("css/*.css")), ids=lambda path: path.name)
def test_a_stylesheet_fetches_nothing(path: Path) -> None:
    assert not re.search(r"url\(|@import", path.read_text())


def test_our_own_scripts_evaluate_nothing() -> None:
    for path in STATIC.glob("js/*.js"):
        assert not re.search(
            r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write", path.read_text()
        )
