"""JSON documents by path, in every kind of column that can hold them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from effaced.core.crypto import Keyring, new_key
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.datamap.run.erase import count_reachable, dry_run, erase

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
KEYS = Keyring.parse(new_key("k7"))
TYPES = ["json", "jsonb", "text", "varchar(5000)"]
PLACES = [("sqlite", "text"), ("postgresql", "json"), ("postgresql", "jsonb"), ("postgresql", "text")]
EVERYWHERE = pytest.mark.parametrize(("company_database", "kind"), PLACES, indirect=["company_database"])


@pytest.fixture
def kind() -> str:
    return "text"


@pytest.fixture
def shelf(company, kind):
    """A table with one document per person."""
    company.run(f"CREATE TABLE people (id integer PRIMARY KEY, k text, mail text, doc {kind})")
    return company


def put(company, document: str | None) -> None:
    company.session.execute(
        text("INSERT INTO people VALUES (1, 'kept', 'ann@x.org', :doc), (2, 'kept', 'bob@x.org', :doc)"),
        {"doc": document},
    )


def written(company, person: int = 1) -> str | None:
    [(cell,)] = company.rows(f"SELECT CAST(doc AS text) FROM people WHERE id = {person}")
    return cell


def plan_of(company, **paths: str):
    rules = ", ".join(f'"{path}": {rule}' for path, rule in paths.items())
    return company.plan(
        "version: 1\nsubject: {table: people, key: id}\nidentifiers: {mail: mail}\ntables:\n  people:\n"
        "    columns: {id: not_personal, k: {retain: law}, mail: not_personal,"
        f" doc: {{json: {{{rules}}}}}}}\n",
        KEYS,
    )


def erased(company, document: str | None, **paths: str) -> str | None:
    """The document afterwards, when it is certain that the plan kept its promises."""
    put(company, document)
    plan = plan_of(company, **paths)
    before = written(company, 2)
    assert dry_run(company.session, plan, "1") == erase(company.session, plan, "1")
    after = written(company)
    assert count_reachable(company.session, plan, "1") == {}
    assert [effect.rows for effect in erase(company.session, plan, "1")] == [0]
    assert after == written(company)
    assert before == written(company, 2)
    return after


@EVERYWHERE
@pytest.mark.parametrize(
    ("path", "document", "left"),
    [
        ("$.name", {"name": "Ann", "n": 1}, {"n": 1}),
        ("$.name", {"name": None}, {}),
        ("$.a.b.c", {"a": {"b": {"c": "Ann", "d": 1}, "e": [2]}}, {"a": {"b": {"d": 1}, "e": [2]}}),
        (
            "$.l[*].x",
            {"l": [{"x": 1}, {"y": 2}, 3, None, [{"x": 4}]]},
            {"l": [{}, {"y": 2}, 3, None, [{"x": 4}]]},
        ),
        ("$[*].x", [{"x": 1}, {"x": 2, "y": 3}], [{}, {"y": 3}]),
        ("$.l[*][*].x", {"l": [[{"x": 1}, {"z": 1}], [], [{"x": 2}]]}, {"l": [[{}, {"z": 1}], [], [{}]]}),
        ("$.l[*]", {"l": [1, "Ann"], "m": [1]}, {"l": [], "m": [1]}),
        ("$.l[1].x", {"l": [{"x": 1}, {"x": 2}]}, {"l": [{"x": 1}, {}]}),
        ("$['odd \\\\ name%s:x']", {"odd \\ name%s:x": 1, "y": "ü😀"}, {"y": "ü😀"}),
        ("$.ключ", {"ключ": 1, "n": 12345678901234567890123456789}, {"n": 12345678901234567890123456789}),
    ],
)
def test_what_a_path_leads_to_is_gone_and_the_rest_is_there(shelf, path, document, left):
    assert left == json.loads(erased(shelf, json.dumps(document), **{path: "delete"}) or "")


ODD_NAMES = ["{0}", "{}", "100%", "%s", "%(x)s", ":x", "it's", "a--b", "$1", "a;b"]


@EVERYWHERE
def test_names_and_values_that_mean_something_elsewhere_are_just_that(shelf):
    document = json.dumps({"kept": 1} | {name: {name: "Ann", "name": "Ann"} for name in ODD_NAMES})
    paths = {name: f'$[\\"{name}\\"]' for name in ODD_NAMES}
    rules = {f'{path}[\\"{name}\\"]': "delete" for name, path in paths.items()}
    rules |= {
        f"{path}.name": f"{{anonymise: fixed, value: {json.dumps(name)}}}" for name, path in paths.items()
    }
    assert {"kept": 1} | {name: {"name": name} for name in ODD_NAMES} == json.loads(
        erased(shelf, document, **rules) or ""
    )


@EVERYWHERE
@pytest.mark.parametrize(
    "document",
    [
        "{}",
        "[]",
        "null",
        '"name"',
        "17",
        "true",
        '{"names": 1}',
        '{"a": "name"}',
        '{"a": [{"name": 1}]}',
        "[1, 2]",
    ],
)
def test_a_document_without_the_path_is_left_byte_for_byte(shelf, document):
    assert document == erased(
        shelf, document, **{"$.name": "delete", "$.a.name": "delete", "$[*].a": "delete"}
    )


@pytest.mark.parametrize(
    ("company_database", "kind"), [PLACES[0], PLACES[1], PLACES[3]], indirect=["company_database"]
)
def test_layout_and_doubled_names_stay_where_the_column_keeps_them(shelf):
    document = '{ "b" :  1.50,"b":2 }'
    assert document == erased(shelf, document, **{"$.name": "delete"})


@EVERYWHERE
def test_a_cell_that_is_null_stays_null(shelf):
    assert erased(shelf, None, **{"$.name": "delete"}) is None


@EVERYWHERE
@pytest.mark.parametrize("rule", ["{anonymise: null}", "{anonymise: fixed_text}", "{anonymise: keyed_hash}"])
def test_a_null_in_the_document_stays_null(shelf, rule):
    assert json.loads(erased(shelf, '{"a": null}', **{"$.a": rule}) or "") == {"a": None}


@EVERYWHERE
@pytest.mark.parametrize(
    ("rule", "value", "left"),
    [
        ("{anonymise: null}", "Ann", None),
        ("{anonymise: null}", {"deep": 1}, None),
        ("{anonymise: fixed_text, text: 'x\"y'}", "Ann", 'x"y'),
        ("{anonymise: fixed_text}", {"deep": 1}, "erased"),
        ("{anonymise: fixed_text, text: '0'}", 0, "0"),
        ("{anonymise: fixed, value: 0}", "0", 0),
        ("{anonymise: fixed, value: false}", True, False),
        ("{anonymise: empty}", "Ann", ""),
        ("{anonymise: empty}", {"a": 1}, {}),
        ("{anonymise: empty}", [1], []),
        ("{anonymise: empty}", 17, None),
        ("{anonymise: keyed_hash}", {"a": 1}, None),
        ("{scrub: all}", "mail ann@x.org now", "mail [erased] now"),
        ("{scrub: all}", 17, 17),
    ],
)
def test_each_surrogate_at_a_path(shelf, rule, value, left):
    document = json.dumps({"l": [{"a": value, "n": 1}, {"n": 2}]})
    after = erased(shelf, document, **{"$.l[*].a": rule})
    assert {"l": [{"a": left, "n": 1}, {"n": 2}]} == json.loads(after or "")


@EVERYWHERE
@pytest.mark.parametrize(
    ("surrogate", "form"),
    [
        ("random_unique", r"erased-[0-9a-f]{32}"),
        ("random_email", r"erased-[0-9a-f]{32}@erased\.invalid"),
        ("random_uuid", r"effaced0(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ],
)
def test_random_values_differ_within_one_document(shelf, surrogate, form):
    after = erased(shelf, '["a", "b", {"c": 1}, 2]', **{"$[*]": f"{{anonymise: {surrogate}}}"})
    values = json.loads(after or "")
    assert len(set(values)) == 4
    assert all(re.fullmatch(form, value) for value in values)


@EVERYWHERE
def test_a_keyed_hash_is_the_same_as_in_a_column(shelf):
    after = erased(
        shelf, '{"a": "ä", "b": 17}', **{"$.a": "{anonymise: keyed_hash}", "$.b": "{anonymise: keyed_hash}"}
    )
    key = KEYS.secret("datamap:keyed_hash")
    expected = [hmac.new(key, text.encode(), hashlib.sha256).hexdigest() for text in ("ä", "17")]
    assert [f"hashed-k7-{each}" for each in expected] == list(json.loads(after or "").values())


@EVERYWHERE
def test_many_paths_go_in_one_statement(shelf):
    paths = {f"$.a{number}.b[*].c{number}.d": "delete" for number in range(30)}
    document = {f"a{number}": {"b": [{f"c{number}": {"d": "Ann", "e": number}}]} for number in range(30)}
    after = json.loads(erased(shelf, json.dumps(document), **paths) or "")
    assert after == {f"a{number}": {"b": [{f"c{number}": {"e": number}}]} for number in range(30)}


@pytest.mark.parametrize("document", ["", "Ann", "{name: Ann}", '{"name": "Ann"', '{"name": NaN}', "[1] [2]"])
@pytest.mark.parametrize(("nullable", "left"), [("", None), (" NOT NULL", "{}")])
def test_a_text_that_is_no_json_does_not_stay(company, document, nullable, left):
    company.run(f"CREATE TABLE people (id integer PRIMARY KEY, k text, mail text, doc text{nullable})")
    assert left == erased(company, document, **{"$.name": "delete"})


def test_a_document_that_no_longer_fits_goes_as_a_whole(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, k text, mail text, doc varchar(20))")
    assert (
        erased(company, '{"name": "Ann"}', **{"$.name": "{anonymise: fixed_text, text: quite long}"}) is None
    )


@ONLY_POSTGRES
def test_what_postgres_cannot_take_apart_does_not_stay(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY, k text, mail text, doc json)")
    assert erased(company, '{"name": "Ann", "x": "\\u0000"}', **{"$.name": "delete"}) is None


documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
RULES = {
    "$.a": "delete",
    "$.b[*].a": "{anonymise: fixed_text, text: gone}",
    "$.b[*].c": "{anonymise: null}",
    "$.c.a[*][*]": "{anonymise: empty}",
    "$[*].b": "delete",
}


def expected(value, path=()):
    """What the rules leave of a document, in the plainest way."""
    if path[-1:] == (None,) and path == ("c", "a", None, None) and value is not None:
        return type(value)() if isinstance(value, dict | list | str) else None
    if path == ("b", None, "c"):
        return None
    if path == ("b", None, "a"):
        return None if value is None else "gone"
    if isinstance(value, dict):
        return {
            name: expected(each, (*path, name))
            for name, each in value.items()
            if (*path, name) not in (("a",), (None, "b"))
        }
    if isinstance(value, list):
        return [expected(each, (*path, None)) for each in value]
    return value


@pytest.mark.property
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=documents, kind=st.sampled_from(TYPES))
def test_any_document_becomes_what_the_rules_say(company_database, tmp_path, document, kind):
    path = tmp_path / "datamap.yaml"
    rules = ", ".join(f'"{each}": {rule}' for each, rule in RULES.items())
    path.write_text(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n  people:\n"
        f"    columns: {{id: not_personal, doc: {{json: {{{rules}}}}}}}\n"
    )
    with company_database.sessions() as session:
        sqlite = session.connection().dialect.name == "sqlite"
        session.execute(
            text(f"CREATE TABLE people (id integer PRIMARY KEY, doc {'text' if sqlite else kind})")
        )
        session.execute(
            text("INSERT INTO people VALUES (1, :doc)"), {"doc": json.dumps(document, ensure_ascii=False)}
        )
        plan = plan_erasure(session.connection(), load_map(path))
        erase(session, plan, "1")
        after = session.execute(text("SELECT CAST(doc AS text) FROM people")).scalar_one()
        assert [effect.rows for effect in erase(session, plan, "1")] == [0]
        assert expected(document) == json.loads(after)
