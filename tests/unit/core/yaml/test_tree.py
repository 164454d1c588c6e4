"""The tree of a YAML file: nodes know their lines, and what can't be read is refused without quoting it."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from yaml.nodes import MappingNode

from effaced.core.errors import ConfigurationError
from effaced.core.yaml.tree import read_tree


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.yaml"


def problems(file: Path) -> list[tuple[str, str]]:
    with pytest.raises(ConfigurationError) as refused:
        read_tree(file)
    return [(each.where.rsplit(":", 1)[-1], each.message) for each in refused.value.problems]


def test_scalars_are_as_written_and_know_their_lines(file: Path) -> None:
    file.write_text("# a comment\non: no\nstraße: 1.50\n", encoding="utf-8")
    root = read_tree(file)
    assert isinstance(root, MappingNode)
    assert [(key.value, value.value, key.start_mark.line + 1) for key, value in root.value] == [
        ("on", "no", 2),
        ("straße", "1.50", 3),
    ]


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_a_file_without_content_is_no_mistake(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert read_tree(file) is None


def test_a_folder_is_refused_with_the_class_of_the_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"can't be read \(IsADirectoryError\)\.$"):
        read_tree(tmp_path)


def test_text_that_is_not_utf8_is_refused(file: Path) -> None:
    file.write_bytes("name: Zoë".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"file\.yaml: can't be read, it is not UTF-8 text\.$"):
        read_tree(file)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\nb: [secret\n", "3", "is not valid YAML: expected ',' or ']'"),
        ("a: 1\n  b: secret\n", "2", "is not valid YAML: mapping values are not allowed here"),
        ("a: *secret\n", "1", "is not valid YAML: found undefined alias"),
        ("a: 1\n--- \nsecret: 2\n", "2", "is not valid YAML: but found another document"),
        ("a: secret\x07\n", "1", "is not valid YAML: it holds characters or nesting that YAML forbids"),
    ],
)
def test_what_is_not_yaml_is_refused_at_its_line(file: Path, text: str, line: str, said: str) -> None:
    file.write_text(text, encoding="utf-8")
    [(where, message)] = problems(file)
    assert (where, message.startswith(said)) == (line, True), message


def test_no_exception_that_quotes_the_file_hangs_on_to_the_refusal(file: Path) -> None:
    file.write_text("password: [hunter2\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        read_tree(file)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


def test_nesting_that_would_end_the_process_is_refused(file: Path) -> None:
    file.write_text("[" * 100_000, encoding="utf-8")
    assert problems(file) == [
        ("1", "is not valid YAML: it holds characters or nesting that YAML forbids"),
    ]


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "a: &a {b: *a}\n"])
def test_an_alias_of_itself_is_too_large_and_not_followed_for_ever(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert problems(file) == [
        ("1", "is too large: its aliases stand for more than 1,000,000 keys and values")
    ]
