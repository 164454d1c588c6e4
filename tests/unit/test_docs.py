"""The documents say what is there: links, paths, names, settings, commands, tests, events."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from named_in_docs import dotted_names, resolve, without_examples

from effaced.audit.events import TYPES
from effaced.cli.main import cli
from effaced.core.config import PREFIX, Settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
STORY = DOCS / "follow-one-request.md"
GUARANTEES = DOCS / "guarantees.md"
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def prose(page: Path) -> str:
    return without_examples(page.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def anchors(page: Path) -> set[str]:
    """The names by which headings are linked to, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in _HEADING.findall(prose(page))
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken = []
    for groups in _LINK.findall(prose(page)):
        link = groups[0] or groups[1]
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_index_lists_every_page() -> None:
    listed = {target for target, _ in _LINK.findall(prose(DOCS / "index.md"))}
    pages = {
        str(page.relative_to(DOCS))
        for page in DOCS.rglob("*.md")
        if page.parent.name not in {"decisions", "clinic", "saas", "shop"} and page.name != "index.md"
    }
    assert pages - listed == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_source_file_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"(?<![\w/])(?:effaced|tests|migrations|templates|static)/[\w/.-]+\.\w+", prose(page))
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_name_in_the_story_is_in_the_code() -> None:
    """`requests.execute.Executor.attempt` means effaced.requests.execute, its Executor, its attempt."""
    names = dotted_names(STORY.read_text(encoding="utf-8"))
    assert names, "the story names functions"
    assert [each for each in names if resolve(each) is None] == []


def test_contributing_has_a_line_for_each_package() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The packages")[2]
    listed = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", table.partition("\n## ")[0], re.MULTILINE)
    packages = {path.stem for path in (ROOT / "effaced").iterdir() if not path.name.startswith("_")}
    assert sorted(listed) == sorted(packages - {"py"})


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_is_in_the_reference_with_its_default(name: str) -> None:
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{PREFIX}{name.upper()}` \|([^|]*)\|", page, re.MULTILINE)
    assert row is not None
    field = Settings.model_fields[name]
    if field.default is None or field.is_required():
        assert "`" not in row[1]
    else:
        assert re.sub(r"[`,]", "", row[1]).strip() == str(field.default).lower().replace("utc", "UTC")


def test_the_reference_has_no_setting_that_does_not_exist() -> None:
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    settings, _, _others = page.partition("## Variables that are not settings")
    rows = re.findall(rf"^\| `{PREFIX}(\w+)` \|", settings, re.MULTILINE)
    assert sorted(rows) == sorted(name.upper() for name in Settings.model_fields)


def commands(group: click.Group, above: str = "effaced") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{above} {name}")
        else:
            yield f"{above} {name}", command


@pytest.mark.parametrize(("name", "command"), [pytest.param(*each, id=each[0]) for each in commands(cli)])
def test_every_command_is_in_the_reference_with_its_options(name: str, command: click.Command) -> None:
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    section = re.search(rf"^### `{re.escape(name)}`$(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    options = [option for each in command.params if isinstance(each, click.Option) for option in each.opts]
    assert [option for option in options if f"`{option}" not in section[1]] == []


def commands_shown(page: Path) -> Iterator[list[str]]:
    """The words after `effaced` of each command on a page: in a sentence, or on a line of its own."""
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"`(?:\.venv/bin/)?effaced ([^`\n]+)`", text)
    lines = re.findall(r"^ *(?:\$ )?(?:\w+=\S+ )*(?:\S*/bin/)?effaced ([a-z].*)$", text, re.MULTILINE)
    shown += [each for each in lines if each.split()[0] in cli.list_commands(click.Context(cli))]
    for each in shown:
        yield re.findall(r"[\w.:=-]+|\"[^\"]*\"", each.split("#")[0])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_is_shown_exists_with_its_options(page: Path) -> None:
    for words in commands_shown(page):
        command: click.Command = cli
        seen: list[click.Parameter] = []
        for word in words:
            seen += command.params
            if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
                found = command.get_command(click.Context(command), word)
                assert found is not None, f"effaced {' '.join(words)}: no command {word}"
                command = found
        options = {option for each in [*seen, *command.params] for option in each.opts} | {"--help"}
        unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in options]
        assert unknown == [], f"effaced {' '.join(words)}"


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.stem)
def test_every_decision_is_listed_by_its_title(decision: Path) -> None:
    title = decision.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    assert f"[{title}]({decision.name})" in listed


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [path.name[:4] for path in DECISIONS] == [f"{n + 1:04}" for n in range(len(DECISIONS))]


@pytest.mark.parametrize("type_", sorted(TYPES))
def test_every_type_of_audit_event_is_explained_with_its_fields(type_: str) -> None:
    glossary = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{type_}` \|[^|]*\|([^|]*)\|$", glossary, re.MULTILINE)
    assert row is not None
    assert sorted(_CODE.findall(row[1])) == sorted(TYPES[type_].model_fields)


def test_every_guarantee_names_tests_that_exist() -> None:
    rows = [line for line in prose(GUARANTEES).splitlines() if line.startswith("| ") and "---" not in line]
    missing = [row for row in rows if not row.startswith("| what holds") and not _TEST.search(row)]
    assert missing == [], "a guarantee without a test"
    named = _TEST.findall(prose(GUARANTEES))
    assert [f"{path}::{test}" for path, test in named if test not in found_in(path)] == []


@cache
def found_in(path: str) -> frozenset[str]:
    if not (ROOT / path).is_file():
        return frozenset()
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            members = (each for each in node.body if isinstance(each, ast.FunctionDef))
            found |= {f"{node.name}::{each.name}" for each in members}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return frozenset(found)
