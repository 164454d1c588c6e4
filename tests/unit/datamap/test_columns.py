"""The `columns:` of one table: what is declared however it is written, and one problem for each mistake."""

from __future__ import annotations

import pytest
import yaml

from effaced.datamap.load.columns import read_columns
from effaced.datamap.load.reader import Reader
from effaced.datamap.model.data_map import ColumnRule, Strategy


def read(text: str) -> tuple[dict[str, ColumnRule], list[str]]:
    reader = Reader("map.yaml")
    columns = read_columns(reader, yaml.compose(text), "people")
    return columns, [f"{each.where.removeprefix('map.yaml:')} {each.message}" for each in reader.problems()]


def test_each_rule_knows_the_line_of_its_column() -> None:
    columns, problems = read("id: not_personal\n\nname:\n  anonymise: null\n")
    assert ({name: rule.line for name, rule in columns.items()}, problems) == ({"id": 1, "name": 3}, [])


@pytest.mark.parametrize("word", ["delete", "not_personal", "derived"])
def test_the_short_form_is_the_long_form(word: str) -> None:
    assert (
        read(f"name: {word}")
        == read(f"name: {{{word}: true}}")
        == ({"name": ColumnRule(Strategy(word), line=1)}, [])
    )


def test_a_column_with_a_mistake_counts_as_declared_and_the_others_are_read() -> None:
    columns, problems = read("id: not_personal\nname: delte\nemail: delete\n")
    assert list(columns) == ["id", "name", "email"]
    assert columns["email"].strategy is Strategy.DELETE
    [problem] = problems
    assert problem.startswith("2 people.name must be ")
    assert problem.endswith("did you mean 'delete'?")


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("{}", "people.name needs exactly one of"),
        ("{delete: true, anonymise: null}", "people.name needs exactly one of"),
        ("{delete: false}", "people.name.delete must be true"),
        ("[delete]", "people.name must be a mapping of names to values"),
        ("anonymise", "people.name: anonymise needs a surrogate: {anonymise: null}"),
        ("retain", 'people.name: retain needs a basis: {retain: {basis: "tax law, ten years"}}'),
        ("{delete: true, text: x}", "people.name: 'text' goes with anonymise only"),
        ("{retain: {until: 2031-12-31}}", "people.name.retain: 'basis' is missing"),
        ("{retain: 'ask anna@people.example'}", "people.name.retain.basis must be one line of at most 200"),
        ('{retain: "one\\ntwo"}', "people.name.retain.basis must be one line of at most 200"),
        (f"{{retain: {'x' * 201}}}", "people.name.retain.basis must be one line of at most 200"),
        ("{retain: {basis: tax, then: delete}}", "people.name.retain: 'then' goes with 'until' only"),
        ("{retain: {basis: tax, until: soon}}", "people.name.retain.until must be"),
        ("{retain: {basis: tax, until: 2031-12-31, then: forget}}", "people.name.retain.then must be"),
        (
            "{retain: {basis: tax, until: 2031-12-31, then: not_personal}}",
            "people.name.retain.then must be delete, anonymise or json, and can't scrub",
        ),
        (
            "{retain: {basis: tax, until: 2031-12-31, then: {scrub: all}}}",
            "people.name.retain.then must be delete, anonymise or json, and can't scrub",
        ),
        (
            '{retain: {basis: tax, until: 2031-12-31, then: {json: {"$.a": {scrub: all}}}}}',
            "people.name.retain.then must be delete, anonymise or json, and can't scrub",
        ),
    ],
)
def test_a_rule_that_can_not_be_meant_is_one_problem(rule: str, problem: str) -> None:
    columns, [found] = read(f"name: {rule}")
    assert "name" in columns
    assert found.startswith(f"1 {problem}")


@pytest.mark.parametrize(
    ("then", "strategy"),
    [
        ("", Strategy.DELETE),
        (", then: delete", Strategy.DELETE),
        (", then: {anonymise: null}", Strategy.ANONYMISE),
    ],
)
def test_what_is_retained_until_a_day_is_deleted_then_unless_the_map_says_otherwise(
    then: str, strategy: Strategy
) -> None:
    columns, problems = read(f"name: {{retain: {{basis: tax, until: 2031-12-31{then}}}}}")
    assert problems == []
    assert columns["name"].then is not None
    assert columns["name"].then.strategy is strategy


def test_a_table_names_every_column() -> None:
    assert read("{}") == ({}, ["1 people.columns must name every column of the table"])
    assert read("[id]") == ({}, ["1 people.columns must be a mapping of names to values"])
