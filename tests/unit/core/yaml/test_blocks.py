"""A file of named blocks: what its frame may be, and every mistake with its place, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from effaced.core.errors import ConfigurationError, Problem
from effaced.core.yaml.blocks import Reading
from effaced.core.yaml.file import read_yaml


class Targets(Reading):
    under = "targets"
    block_has = "`url:`"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.yaml"


def reading(file: Path, text: str, environ: dict[str, str] | None = None) -> Targets:
    file.write_text(text, encoding="utf-8")
    return Targets(read_yaml(file), environ or {})


def said(found: Reading) -> list[str]:
    return [f"{each.where.rsplit(':', 1)[-1]} {each.message}" for each in found.problems]


def test_the_blocks_come_with_their_names_in_the_order_of_the_file(file: Path) -> None:
    found = reading(file, "version: 1\ntargets:\n  b-2: {url: '${HERE}'}\n  a_1: {}\n")
    assert found.blocks() == [("b-2", {"url": "${HERE}"}), ("a_1", {})]
    found.require_no_problems()


def test_no_blocks_at_all_have_to_be_said(file: Path) -> None:
    found = reading(file, "version: 1\ntargets: {}\n")
    assert (found.blocks(), found.problems) == ([], [])


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["1 expected the keys `version: 1` and `targets:`"]),
        ("[version, targets]", ["1 expected the keys `version: 1` and `targets:`"]),
        ("version: 1\n", ["1 targets: expected a mapping of names to targets ({} for none)"]),
        ("version: 1\ntargets:\n", ["2 targets: expected a mapping of names to targets ({} for none)"]),
        ("targets: {}\n", ["1 version: expected 1, the only version there is"]),
        ("version: 2\ntargets: {}\n", ["1 version: expected 1, the only version there is"]),
        ("version: yes\ntargets: {}\n", ["1 version: expected 1, the only version there is"]),
        ("version: '1'\ntargets: {}\n", ["1 version: expected 1, the only version there is"]),
        (
            "version: 1\ntarget: {}\ntargets: {}\n",
            ["2 target: unknown key; did you mean 'targets'?"],
        ),
        ("version: 1\ntargets:\n  a: x\n", ["3 targets.a: expected a mapping with `url:`"]),
    ],
)
def test_a_frame_that_is_wrong_is_refused_at_its_line(file: Path, text: str, problems: list[str]) -> None:
    found = reading(file, text)
    assert (found.blocks(), said(found)) == ([], problems)


@pytest.mark.parametrize("name", ["Crm", "1st", "-a", "'a b'", "a.b", "x" * 64, "7", "''"])
def test_a_name_that_could_be_mistaken_is_refused_and_its_block_still_read(file: Path, name: str) -> None:
    found = reading(file, f"version: 1\ntargets:\n  {name}: {{url: x}}\n")
    [(_, block)] = found.blocks()
    [problem] = said(found)
    assert block == {"url": "x"}
    assert problem.endswith(
        "a name has small letters, digits, - and _, starts with a letter and is at most 63 long"
    )


def test_the_longest_name_is_taken(file: Path) -> None:
    found = reading(file, f"version: 1\ntargets:\n  {'x' * 63}: {{}}\n")
    assert (found.blocks(), found.problems) == ([("x" * 63, {})], [])


def test_a_variable_that_is_not_set_is_named_and_what_follows_from_it_is_not(file: Path) -> None:
    found = reading(file, "version: 1\ntargets:\n  a:\n    url: ${NOWHERE}\n    key: ${KEY}\n", {"KEY": "k"})
    [(name, block)] = found.blocks()
    place = ("targets", name)
    assert found.filled(place, block)["key"] == "k"
    found.complain((*place, "url"), "is no URL")
    found.complain((*place, "key"), "is too short")
    assert said(found) == [
        "4 targets.a.url: the environment variable NOWHERE is not set or is empty",
        "5 targets.a.key: is too short",
    ]


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("url", "3 targets.a.url: is wrong"),
        ("headers.1.name", "5 targets.a.headers.1.name: is wrong"),
        ("headers.9", "3 targets.a.headers.9: is wrong"),
        ("", "3 targets.a: is wrong"),
    ],
)
def test_a_problem_within_a_block_is_passed_on_with_its_place(file: Path, where: str, problem: str) -> None:
    found = reading(file, "version: 1\ntargets:\n  a: {url: x, headers: [\n {name: x},\n {name: y}]}\n")
    found.pass_on(("targets", "a"), [Problem(where, "is wrong")])
    assert said(found) == [problem]


def test_all_problems_are_raised_together_under_the_name_of_the_file(file: Path) -> None:
    found = reading(file, "version: 2\ntargets: 3\n")
    found.blocks()
    with pytest.raises(ConfigurationError, match=r"file\.yaml can't be used") as refused:
        found.require_no_problems()
    problems: Any = refused.value.problems
    assert [each.message for each in problems] == [
        "version: expected 1, the only version there is",
        "targets: expected a mapping of names to targets ({} for none)",
    ]
