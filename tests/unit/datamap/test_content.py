"""What a map may say about the content of a column: surrogates, JSON paths, texts to scrub."""

from __future__ import annotations

from pathlib import Path

import pytest

from effaced.core.errors import ConfigurationError
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import Action, ColumnRule, DataMap, Strategy, Surrogate

ANONYMISE, DELETE = Strategy.ANONYMISE, Strategy.DELETE


@pytest.fixture
def read(tmp_path: Path):
    def _read(rule: str, more: str = "") -> DataMap:
        path = tmp_path / "datamap.yaml"
        path.write_text(
            "version: 1\nsubject: {table: people, key: id}\ntables:\n  people:\n    columns:\n"
            f"      id: not_personal\n      it: {rule}\n{more}",
            encoding="utf-8",
        )
        return load_map(path)

    return _read


def rule_of(read, rule: str) -> ColumnRule:
    return read(rule).tables["people"].columns["it"]


def problems_of(read, rule: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(rule)
    return [problem.message for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("{anonymise: fixed, value: 0}", ColumnRule(ANONYMISE, Surrogate.FIXED, value="0")),
        ("{anonymise: fixed, value: 'no'}", ColumnRule(ANONYMISE, Surrogate.FIXED, value="no")),
        ("{anonymise: fixed, value: ''}", ColumnRule(ANONYMISE, Surrogate.FIXED, value="")),
        ("{anonymise: fixed, value: 1900-01-01}", ColumnRule(ANONYMISE, Surrogate.FIXED, value="1900-01-01")),
        ("{anonymise: random_email}", ColumnRule(ANONYMISE, Surrogate.RANDOM_EMAIL)),
        ("{anonymise: random_number}", ColumnRule(ANONYMISE, Surrogate.RANDOM_NUMBER)),
        ("{anonymise: random_uuid}", ColumnRule(ANONYMISE, Surrogate.RANDOM_UUID)),
        ("{anonymise: empty}", ColumnRule(ANONYMISE, Surrogate.EMPTY)),
        ("{anonymise: keyed_hash}", ColumnRule(ANONYMISE, Surrogate.KEYED_HASH)),
        ("{scrub: all}", ColumnRule(Strategy.SCRUB)),
        ("{scrub: [email, name, email]}", ColumnRule(Strategy.SCRUB, names=("email", "name"))),
        ("{review: looks like a name}", ColumnRule(Strategy.REVIEW, reason="looks like a name")),
        (
            '{json: {"$.name": delete}}',
            ColumnRule(Strategy.JSON, paths=((("name",), ColumnRule(DELETE)),)),
        ),
    ],
)
def test_each_way_to_say_what_a_cell_becomes(read, written, rule):
    assert rule == rule_of(read, written)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$.name", ("name",)),
        ("$.a.b", ("a", "b")),
        ("$.contacts[*].email", ("contacts", None, "email")),
        ("$[*][*]", (None, None)),
        ("$[0].x", (0, "x")),
        ("$['odd name'].x", ("odd name", "x")),
        ("$['a.b[0]']", ("a.b[0]",)),
        ("$.Straße-1", ("Straße-1",)),
    ],
)
def test_a_path_is_read_step_by_step(read, path, steps):
    assert [steps] == [path for path, _ in rule_of(read, f'{{json: {{"{path}": delete}}}}').paths]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("0", "0"),
        ("'0'", '"0"'),
        ("true", "true"),
        ("1.5", "1.5"),
        ("ß", '"ß"'),
        ("1900-01-01", '"1900-01-01"'),
    ],
)
def test_a_fixed_value_in_a_document_keeps_the_type_it_has_in_the_map(read, value, written):
    rule = rule_of(read, f'{{json: {{"$.a": {{anonymise: fixed, value: {value}}}}}}}')
    assert [written] == [each.value for _, each in rule.paths]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{anonymise: fixed}", "people.it.value must be a number, a date, a word or true or false"),
        ("{anonymise: fixed, value: null}", "people.it.value must be a number, a date, a word"),
        ("{anonymise: fixed, value: [1]}", "people.it.value must be a number, a date, a word"),
        ("{anonymise: empty, value: 1}", "people.it: 'value' goes with fixed only"),
        ("{scrub: email}", "people.it.scrub must be all, or a list such as [email, name]"),
        ("{scrub: []}", "people.it.scrub must name at least one identifier"),
        ("{scrub: all, text: x}", "people.it: 'text' goes with anonymise only"),
        ("scrub", "people.it: scrub needs the identifiers to look for: {scrub: all}"),
        ("review", "people.it: review needs a reason"),
        ("{review: ''}", "people.it.review must be a text"),
        ("json", "people.it: json needs paths"),
        ("{json: {}}", "people.it.json must name at least one path"),
        ("{json: [$.a]}", "people.it.json must be a mapping of names to values"),
        ("{json: {name: delete}}", "people.it.json name: must be a path such as $.name"),
        ("{json: {$: delete}}", "people.it.json $: must be a path"),
        ("{json: {'$.a[-1]': delete}}", "people.it.json $.a[-1]: must be a path"),
        ("{json: {'$.a[1]': delete}}", "people.it.json $.a[1]: a numbered element can't be deleted"),
        ("{json: {$.a: not_personal}}", "people.it.json $.a must be delete, anonymise or scrub; what no"),
        ("{json: {$.a: {retain: x}}}", "people.it.json $.a must be delete, anonymise or scrub"),
        ("{json: {$.a: {anonymise: truncated_date}}}", "people.it.json $.a: truncated_date is for columns"),
        ("{json: {$.a: {anonymise: fixed}}}", "people.it.json $.a.value must be a number"),
        ("{json: {$.a: wipe}}", "people.it.json $.a must be delete, anonymise, json"),
    ],
)
def test_a_mistake_in_a_rule_says_what_is_allowed(read, rule, said):
    [problem] = problems_of(read, rule)
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("one", "other"),
    [("$.a", "$.a.b"), ("$.a[*]", "$.a[0].x"), ("$.a[0].x", "$.a[*].y"), ("$.a", "$['a']")],
)
def test_two_paths_to_the_same_place_are_refused(read, one, other):
    rules = f'"{one}": {{anonymise: null}}, "{other}": {{anonymise: null}}'
    [problem] = problems_of(read, f"{{json: {{{rules}}}}}")
    assert problem == f"people.it.json {other}: leads to the same place as the path in line 7"


@pytest.mark.parametrize("other", ["$.b", "$.ab", "$.a[1]", "$.c[*].x"])
def test_paths_to_different_places_go_together(read, other):
    rules = f'"$.a[0]": {{anonymise: null}}, "{other}": {{anonymise: null}}'
    assert len(rule_of(read, f"{{json: {{{rules}}}}}").paths) == 2


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("{scrub: all}", Action.ANONYMISED),
        ("{json: {$.a: delete}}", Action.ANONYMISED),
        ("{anonymise: keyed_hash}", Action.PSEUDONYMISED),
        ("{json: {$.a: {anonymise: keyed_hash}}}", Action.PSEUDONYMISED),
    ],
)
def test_the_row_stays_and_a_keyed_hash_is_not_called_anonymous(read, rule, action):
    assert action is read(rule).tables["people"].action


def test_a_derived_column_alone_does_not_say_what_happens_to_the_row(read):
    [problem] = problems_of(read, "derived")
    assert problem.startswith("people: every column is not_personal, so it is unclear whether its rows stay")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{anonymise: fixed, value: 1}", "{anonymise: fixed, value: 2}"),
        ("{scrub: [a]}", "{scrub: [b]}"),
        ("{json: {$.a: delete}}", "{json: {$.b: delete}}"),
        ("{json: {$.a: delete}}", "{json: {$.a: {anonymise: null}}}"),
    ],
)
def test_the_hash_tells_different_rules_apart(read, one, other):
    assert read(one).hash != read(other).hash


def test_the_hash_does_not_depend_on_the_order_of_paths_and_names(read):
    one = read("{json: {$.a: delete, '$.b[0]': {scrub: [x, y]}}}").hash
    assert one == read("{json: {'$.b[0]': {scrub: [y, x]}, $.a: delete}}").hash


def test_a_map_of_the_first_kind_keeps_its_hash(read):
    expected = "6074157c0d0c5ef93bde79dd77c17224f44b30c5e1c068f7dc162b0e3fb612e2"
    assert expected == read("{anonymise: fixed_text, text: x}").hash


@pytest.mark.parametrize("rule", ["{scrub: all}", "{json: {$.a: {scrub: all}}}", "derived", "{review: why}"])
def test_when_a_retention_has_ended_nothing_can_be_scrubbed(read, rule):
    [problem] = problems_of(read, f"{{retain: {{basis: law, until: 2031-12-31, then: {rule}}}}}")
    assert problem == "people.it.retain.then must be delete, anonymise or json, and can't scrub"


def test_a_hash_at_the_end_of_a_retention_needs_a_key_from_the_start(read):
    assert read("{retain: {basis: law, until: 2031-12-31, then: {anonymise: keyed_hash}}}").pseudonymises
