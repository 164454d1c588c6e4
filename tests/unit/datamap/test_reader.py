"""Reading a YAML tree: every mistake is reported with its line, and reading goes on."""

from __future__ import annotations

import yaml

from effaced.datamap.load.reader import Reader, did_you_mean, one_of


def test_reading_goes_on_after_a_mistake() -> None:
    node = yaml.compose("name: [a]\nnmae: b\nname: c\nage: 7\n")
    reader = Reader("map.yaml")

    fields = reader.fields(node, "person", ("name", "age"), required=("email",))

    assert set(fields) == {"name", "age"}
    assert reader.text(fields["name"], "person.name") is None
    assert [(each.where, each.message) for each in reader.problems()] == [
        ("map.yaml:1", "person.name must be a text"),
        ("map.yaml:1", "person: 'email' is missing"),
        ("map.yaml:2", "person: unknown key 'nmae'; did you mean 'name'?"),
        ("map.yaml:3", "person: 'name' is there twice"),
    ]


def test_a_name_is_taken_as_it_is_written() -> None:
    node = yaml.compose("on: no\nnull: 1\n")

    assert {
        name: value.value for name, (_, value) in Reader("map.yaml").mapping(node, "columns").items()
    } == {
        "on": "no",
        "null": "1",
    }


def test_what_is_left_out_is_no_mistake() -> None:
    reader = Reader("map.yaml")

    assert reader.mapping(None, "refs") == {}
    assert list(reader.texts(None, "schemas")) == []
    assert reader.problems() == []


def test_one_mistake_that_an_alias_repeats_is_one_problem() -> None:
    node = yaml.compose("a: &x {}\nb: *x\n")
    reader = Reader("map.yaml")

    for _, value in reader.mapping(node, "map").values():
        reader.text(value, "each")

    assert len(reader.problems()) == 1


def test_words_are_listed_and_the_closest_is_proposed() -> None:
    assert one_of(["a", "b", "c"]) == "a, b or c"
    assert did_you_mean("delte", ["delete", "retain"]) == "; did you mean 'delete'?"
    assert did_you_mean("zzz", ["delete", "retain"]) == ""
