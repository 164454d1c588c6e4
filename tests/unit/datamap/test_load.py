"""Reading data maps: what they may say, and every mistake told at once with its line."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from textwrap import dedent

import pytest

from effaced.core.errors import ConfigurationError
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import Action, ColumnRule, DatePart, Link, Strategy, Surrogate
from effaced.datamap.model.last_day import Until

WHOLE = """\
version: 1
subject: {table: customers, key: id}
identifiers: {email: email, phone: phone}
refs:
  payment_customer: {column: payment_ref}
  crm: crm_ref
  file_prefix: {template: "customers/{id}/{region}"}
tables:
  customers:
    columns:
      id: {not_personal: true}
      region: not_personal
      email: {anonymise: random_unique}
      name: {anonymise: fixed_text, text: "x"}
      nick: {anonymise: fixed_text}
      phone: {anonymise: null}
      fax: {anonymise: "null"}
      born: {anonymise: truncated_date, to: month}
      seen: {anonymise: truncated_date}
      payment_ref: delete
      crm_ref: {delete: true}
  invoices:
    link: {to: customers, on: {customer_id: id}}
    columns:
      customer_id: {retain: tax law}
      number: {retain: {basis: "tax law, ten years", until: 2031-12-31}}
  tickets:
    link:
      - {to: customers, on: {customer_id: id}}
      - {to: invoices, on: {invoice: number, customer_id: customer_id}}
    columns: {customer_id: delete, invoice: delete, on: delete, "no": not_personal, null: delete}
not_personal: [products, countries]
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def _write(text: str):
        (tmp_path / "datamap.yaml").write_text(dedent(text), encoding="utf-8")
        return load_map("datamap.yaml")

    return _write


def problems_of(write, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        write(text)
    return [str(problem) for problem in caught.value.problems]


def minimal(**replaced: str) -> str:
    """A map of one table; each keyword replaces one of its parts."""
    parts = {
        "version": "version: 1",
        "subject": "subject: {table: people, key: id}",
        "more": "",
        "columns": "{id: delete}",
        "after": "",
    } | replaced
    return "\n".join(
        [
            parts["version"],
            parts["subject"],
            parts["more"],
            "tables:",
            f"  people: {{columns: {parts['columns']}}}",
            parts["after"],
        ]
    )


# --- what a map may say ------------------------------------------------------------------------------


def test_subject_identifiers_and_tables_without_personal_data(write):
    data_map = write(WHOLE)
    assert (data_map.subject, data_map.key) == ("customers", ("id",))
    assert {rule.kind: rule.column for rule in data_map.identifiers} == {"email": "email", "phone": "phone"}
    assert list(data_map.not_personal) == ["products", "countries"]


def test_a_key_may_have_several_columns(write):
    data_map = write(minimal(subject="subject: {table: people, key: [club, id]}", columns="{id: delete}"))
    assert data_map.key == ("club", "id")


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ("id", ColumnRule(Strategy.NOT_PERSONAL)),
        ("region", ColumnRule(Strategy.NOT_PERSONAL)),
        ("email", ColumnRule(Strategy.ANONYMISE, Surrogate.RANDOM_UNIQUE)),
        ("name", ColumnRule(Strategy.ANONYMISE, Surrogate.FIXED_TEXT, text="x")),
        ("nick", ColumnRule(Strategy.ANONYMISE, Surrogate.FIXED_TEXT, text="erased")),
        ("phone", ColumnRule(Strategy.ANONYMISE, Surrogate.NULL)),
        ("fax", ColumnRule(Strategy.ANONYMISE, Surrogate.NULL)),
        ("born", ColumnRule(Strategy.ANONYMISE, Surrogate.TRUNCATED_DATE, to=DatePart.MONTH)),
        ("seen", ColumnRule(Strategy.ANONYMISE, Surrogate.TRUNCATED_DATE, to=DatePart.YEAR)),
        ("payment_ref", ColumnRule(Strategy.DELETE)),
        ("crm_ref", ColumnRule(Strategy.DELETE)),
    ],
)
def test_each_way_to_say_what_happens_to_a_column(write, column, rule):
    assert write(WHOLE).tables["customers"].columns[column] == rule


def test_retention_has_a_basis_and_perhaps_an_end(write):
    columns = write(WHOLE).tables["invoices"].columns
    assert columns["customer_id"] == ColumnRule(Strategy.RETAIN, basis="tax law")
    assert columns["number"] == ColumnRule(
        Strategy.RETAIN,
        basis="tax law, ten years",
        until=Until(date(2031, 12, 31)),
        then=ColumnRule(Strategy.DELETE),
    )


def test_a_table_may_have_several_links_of_several_columns(write):
    assert write(WHOLE).tables["tickets"].links == (
        Link("customers", (("customer_id", "id"),)),
        Link("invoices", (("invoice", "number"), ("customer_id", "customer_id"))),
    )


def test_names_that_yaml_takes_for_other_things_are_names(write):
    assert {"on", "no", "null"} <= set(write(WHOLE).tables["tickets"].columns)


@pytest.mark.parametrize(
    ("table", "action"),
    [
        ("customers", Action.ANONYMISED),
        ("invoices", Action.RETAINED),
        ("tickets", Action.DELETED),
    ],
)
def test_rows_go_unless_something_in_them_is_retained_or_anonymised(write, table, action):
    assert write(WHOLE).tables[table].action is action


@pytest.mark.parametrize(
    ("kind", "cells", "expected"),
    [
        ("payment_customer", {"payment_ref": "cus_1"}, "cus_1"),
        ("crm", {"crm_ref": "7"}, "7"),
        ("file_prefix", {"id": "7", "region": "eu"}, "customers/7/eu"),
        ("file_prefix", {"id": "7", "region": ""}, None),
        ("file_prefix", {"id": None, "region": "eu"}, None),
    ],
)
def test_a_ref_is_made_of_columns_and_is_absent_if_one_of_them_is_empty(write, kind, cells, expected):
    ref = next(rule for rule in write(WHOLE).refs if rule.kind == kind)
    assert ref.fill(cells) == expected


# --- the hash ----------------------------------------------------------------------------------------


def test_the_hash_ignores_comments_order_and_spelling(write):
    one = write("""
        version: 1
        subject: {table: people, key: id}
        identifiers: {email: email, phone: phone}
        tables:
          people: {columns: {id: not_personal, email: {anonymise: null}, phone: delete}}
          notes: {link: {to: people, on: {a: id, b: email}}, columns: {a: delete, b: delete}}
        not_personal: [x, y]
        """)
    other = write("""
        # the same, written by somebody else
        not_personal:
        - y
        - x
        tables:
          notes:
            columns: {b: {delete: true}, a: delete}
            link: [{on: {b: email, a: id}, to: people}]
          people:
            columns:
              phone: delete
              id: {not_personal: true}
              email: {anonymise: "null"}
        identifiers: {phone: phone, email: email}
        subject: {key: [id], table: people}
        version: 1
        """)
    assert one.hash == other.hash
    assert len(one.hash) == 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("key: id", "key: email"),
        ("{email: email, ", "{email: phone, "),
        ("region: not_personal", "region: delete"),
        ("to: month", "to: year"),
        ('text: "x"', 'text: "y"'),
        ("ten years", "six years"),
        ("2031-12-31", "2031-12-30"),
        ("{customer_id: id}", "{customer_id: region}"),
        ("customers/{id}", "people/{id}"),
        ("[products, ", "[things, "),
    ],
)
def test_the_hash_changes_with_what_the_map_says(write, old, new):
    assert old in WHOLE
    assert write(WHOLE).hash != write(WHOLE.replace(old, new)).hash


# --- mistakes ----------------------------------------------------------------------------------------


def test_all_mistakes_are_told_at_once_each_with_its_line(write):
    assert problems_of(
        write,
        """\
        version: 2
        subject: {table: people, kee: id}
        identifers: {email: email}
        refs:
          files: {template: "x/{0}{"}
          crm: {column: a, template: "{b}"}
        tables:
          people:
            link: {to: notes, on: {a: b}}
            columns:
              id: wipe
              name: {anonymise: fixed_txt}
              mail: {retain: {until: 2031-13-01}}
              mail: delete
          notes:
            columns: {a: {delete: true, retain: x}}
          effaced_requests:
            link: {to: peple, on: {}}
            colums: {}
        not_personal: [notes]
        """,
    ) == [
        "datamap.yaml:1: version must be 1",
        "datamap.yaml:2: subject: 'key' is missing",
        "datamap.yaml:2: subject: unknown key 'kee'; did you mean 'key'?",
        "datamap.yaml:3: the data map: unknown key 'identifers'; did you mean 'identifiers'?",
        "datamap.yaml:5: refs.files.template must name columns in braces, such as 'customers/{id}/',"
        " and nothing else",
        "datamap.yaml:6: refs.crm needs either column or template",
        "datamap.yaml:9: people: the subject table has no link; the others link to it",
        "datamap.yaml:11: people.id must be delete, anonymise, json, scrub, retain, not_personal, derived"
        " or review",
        "datamap.yaml:12: people.name.anonymise must be null, fixed_text, fixed, random_unique, random_email,"
        " random_number, random_uuid, truncated_date, empty or keyed_hash; did you mean 'fixed_text'?",
        "datamap.yaml:13: people.mail.retain.until must be a date such as 2031-12-31, or a column and a time"
        " such as 'issued_on + 10 years'",
        "datamap.yaml:13: people.mail.retain: 'basis' is missing",
        "datamap.yaml:14: people.columns: 'mail' is there twice",
        "datamap.yaml:15: notes: 'link' is missing; it says how the rows belong to a person",
        "datamap.yaml:16: notes.a needs exactly one of delete, anonymise, json, scrub, retain, not_personal,"
        " derived or review",
        "datamap.yaml:17: effaced_requests: effaced's own tables are left out of the map",
        "datamap.yaml:18: effaced_requests.link.on must name at least one pair of columns",
        "datamap.yaml:18: effaced_requests: 'columns' is missing",
        "datamap.yaml:19: effaced_requests: unknown key 'colums'; did you mean 'columns'?",
        "datamap.yaml:20: not_personal: 'notes' is also under tables",
    ]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("retain", 'people.id: retain needs a basis: {retain: {basis: "tax law, ten years"}}'),
        ("anonymise", "people.id: anonymise needs a surrogate: {anonymise: null}"),
        ("{anonymise: }", "people.id.anonymise must be null, fixed_text, fixed, random_unique,"),
        ("{anonymise: null, text: x}", "people.id: 'text' goes with fixed_text only"),
        ("{anonymise: random_unique, to: year}", "people.id: 'to' goes with truncated_date only"),
        ("{anonymise: truncated_date, to: day}", "people.id.to must be year or month"),
        ("{anonymise: fixed_text, text: null}", "people.id.text must be a text (for an empty cell, use"),
        ("{delete: true, text: x}", "people.id: 'text' goes with anonymise only"),
        ("{not_personal: false}", "people.id.not_personal must be true"),
        ("{retain: ''}", "people.id.retain.basis must be a text"),
        ("{retain: ask bob@example.org}", "people.id.retain.basis must be one line of at most 200"),
        ("[delete]", "people.id must be a mapping of names to values"),
        ("{}", "people.id needs exactly one of"),
        ("", "people.id must be delete, anonymise, json, scrub, retain"),
    ],
)
def test_a_wrong_column_rule_says_what_is_allowed(write, rule, message):
    [problem] = problems_of(write, minimal(columns=f"{{id: {rule}}}"))
    assert problem.startswith(f"datamap.yaml:5: {message}")


@pytest.mark.parametrize(
    ("replaced", "problem"),
    [
        ({"version": ""}, "datamap.yaml:2: the data map: 'version' is missing"),
        ({"subject": "subject: {table: person, key: id}"}, "subject: 'person' is not under tables"),
        ({"subject": "subject: people"}, "subject must be a mapping of names to values"),
        ({"subject": "subject: {table: people, key: []}"}, "subject.key must name at least one column"),
        ({"subject": "subject: {table: people, key: [a, a]}"}, "subject.key must name at least one column"),
        ({"columns": "{}"}, "people.columns must name every column of the table"),
        ({"columns": "{id: not_personal}"}, "people: every column is not_personal, so it is unclear whether"),
        ({"more": "identifiers: [email]"}, "identifiers must be a mapping of names to values"),
        ({"more": "identifiers: {my mail: x}"}, "identifiers: 'my mail' must be a word of letters, digits"),
        ({"more": "refs: {a: {}}"}, "refs.a needs either column or template"),
        ({"more": "refs: {a: {template: plain}}"}, "refs.a.template must name columns in braces"),
        ({"more": "refs: {a: {template: '{id!r}'}}"}, "refs.a.template must name columns in braces"),
        ({"more": "refs: {a: {template: '{}'}}"}, "refs.a.template must name columns in braces"),
        ({"more": "not_personal: products"}, "not_personal must be a list"),
        ({"more": "not_personal: [a, a]"}, "not_personal: 'a' is there twice"),
        ({"more": "not_personal: [effaced_x]"}, "not_personal: 'effaced_x': effaced's own tables"),
        (
            {"after": "  notes: {link: {to: peopel, on: {a: id}}, columns: {a: delete}}"},
            "notes.link.to: 'peopel' is not under tables; did you mean 'people'?",
        ),
        (
            {
                "after": "  notes: {link: {to: things, on: {a: id}}, columns: {a: delete}}\n"
                "not_personal: [things]"
            },
            "notes.link.to: 'things' is listed as not_personal",
        ),
        ({"after": "  notes: {link: [], columns: {a: delete}}"}, "notes.link must name at least one table"),
        ({"after": "  notes: [x]"}, "notes must be a mapping of names to values"),
    ],
)
def test_a_mistake_elsewhere_in_the_map_is_named(write, replaced, problem):
    [found] = problems_of(write, minimal(**replaced))
    assert problem in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "datamap.yaml:1: the data map is empty; it needs version, subject and tables"),
        ("# nothing yet", "datamap.yaml:1: the data map is empty; it needs version, subject and tables"),
        ("- a", "datamap.yaml:1: the data map must be a mapping of names to values"),
        ("a: [1\nb: 2", "datamap.yaml:2: is not valid YAML: expected ',' or ']', but got ':'"),
        ("a: 1\n---\nb: 2", "datamap.yaml:2: is not valid YAML: but found another document"),
        ("a: \0", "datamap.yaml:1: is not valid YAML: it holds characters or nesting that YAML forbids"),
    ],
)
def test_a_file_that_is_no_map_at_all(write, text, problem):
    assert problems_of(write, text) == [problem]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigurationError, match=r"missing\.yaml: there is no such file"):
        load_map(tmp_path / "missing.yaml")


def test_a_file_that_is_not_utf8(tmp_path):
    (tmp_path / "datamap.yaml").write_bytes(b"version: \xff\xfe")
    with pytest.raises(ConfigurationError, match="not UTF-8 text"):
        load_map(tmp_path / "datamap.yaml")


def test_the_example_in_the_reference_is_a_map(write):
    page = Path(__file__).parents[3] / "docs" / "reference" / "datamap.md"
    example = page.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    assert set(write(example).tables) == {"customers", "invoices", "tickets"}


def test_tables_that_nobody_has_decided_about_are_named_with_a_reason(write):
    data_map = write(minimal(after="review: {leads: email looks personal}"))
    assert {name: reason for name, (_, reason) in data_map.undecided.items()} == {
        "leads": "email looks personal"
    }


def test_a_table_is_either_decided_about_or_not(write):
    text = minimal(after="not_personal: [leads]\nreview: {leads: email looks personal}")
    assert [
        each for each in problems_of(write, text) if "'leads' is also under tables or not_personal" in each
    ]
