"""A YAML file whose complaints name the line, and never quote the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from effaced.core.errors import ConfigurationError
from effaced.core.yaml.file import YamlFile, read_yaml


def read(tmp_path: Path, text: str) -> YamlFile:
    (path := tmp_path / "file.yaml").write_text(text, encoding="utf-8")
    return read_yaml(path)


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path, text)
    return [f"{each.where.rsplit('/', 1)[-1]} {each.message}" for each in error.value.problems]


def test_each_key_and_item_knows_its_line(tmp_path: Path) -> None:
    file = read(tmp_path, "a:\n  b: 1\n  c:\n    - x\n    - y\n")
    assert file.data == {"a": {"b": 1, "c": ["x", "y"]}}
    assert (file.lines["a",], file.lines["a", "b"], file.lines["a", "c", 1]) == (1, 2, 5)


def test_a_problem_points_at_the_nearest_place_that_exists(tmp_path: Path) -> None:
    problem = read(tmp_path, "a:\n  b: 1\n").problem(("a", "b", "missing"), "is required")
    assert (problem.where.rsplit(":", 1)[-1], problem.message) == ("2", "a.b.missing: is required")


def test_an_empty_file_has_no_data(tmp_path: Path) -> None:
    assert read(tmp_path, "# nothing\n").data is None


def test_a_repeated_key_is_refused_once_with_both_lines(tmp_path: Path) -> None:
    assert problems(tmp_path, "a: {x: 1}\nb: 2\na: {x: 3}\n") == ["file.yaml:3 a: already there in line 1"]


@pytest.mark.parametrize("text", ["a: [secret", "a: !secret x", "a: &x [*x]\nb: \x07secret"])
def test_what_is_not_yaml_is_refused_without_quoting_it(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert "is not valid YAML" in problem
    assert "secret" not in problem


def test_aliases_of_aliases_do_not_fill_the_memory(tmp_path: Path) -> None:
    levels = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    (problem,) = problems(tmp_path, "\n".join(levels))
    assert "is too large" in problem


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: there is no such file"):
        read_yaml(tmp_path / "nowhere.yaml")
