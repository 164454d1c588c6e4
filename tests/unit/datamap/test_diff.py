"""Two data maps compared: every kind of difference is told in its group, and what has no effect is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from effaced.datamap.load.file import load_map
from effaced.datamap.show.diff import Group, compare

MAP = """\
version: 1
subject: {table: customers, key: id}
identifiers: {email: email}
refs: {crm: crm_ref}
tables:
  customers:
    mentions: {to: customers, on: {referred_by: id}, columns: {referred_by: {anonymise: null}, hint: delete}}
    columns:
      id: not_personal
      email: {anonymise: random_unique}
      name: {anonymise: fixed_text}
      born: {anonymise: null}
      phone: delete
      crm_ref: {retain: {basis: support, until: 2031-12-31}}
      hint: {anonymise: null}
      profile: {json: {$.name: delete, $.phone: {anonymise: null}}}
      letter: {scrub: [email]}
      referred_by: {anonymise: null}
  notes:
    link: {to: customers, on: {owner: id}, where: {kind: [Customer, Guest]}}
    columns: {owner: delete, kind: not_personal, body: delete}
  visits:
    mentions: {to: customers, on: {guest: id}, columns: {guest: {anonymise: null}}}
    columns: {guest: not_personal, day: not_personal}
  invoices:
    link: {to: customers, on: {customer: id}}
    columns: {customer: {retain: tax law}, number: {retain: tax law}}
rectify: {name: customers.name}
not_personal: [products, archive]
"""
Told = list[tuple[Group, str, str]]


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Told]:
    """What differs after replacing one text by another, two at a time."""

    def make(*texts: str) -> Told:
        new = MAP
        for one, other in zip(texts[::2], texts[1::2], strict=True):
            assert one in new
            new = new.replace(one, other, 1)
        paths = [tmp_path / "old.yaml", tmp_path / "new.yaml"]
        for path, text in zip(paths, (MAP, new), strict=True):
            path.write_text(text)
        return [(each.group, each.where, each.what) for each in compare(*map(load_map, paths))]

    return make


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("version: 1", "# a comment\nversion: 1"),
        ("{owner: delete, kind: not_personal, body: delete}", "{body: delete, owner: delete, kind: delete}"),
        ("phone: delete", "phone: {anonymise: null}"),
        ("name: {anonymise: fixed_text}", "name: {anonymise: fixed_text, text: erased}"),
        ("[Customer, Guest]", "[Guest, Customer]"),
        ("[products, archive]", "[archive, products]"),
        ("[products, archive]", "[products, archive, more]"),
        ("{customer: {retain: tax law}", "{customer: {retain: {basis: tax law}}"),
    ],
)
def test_what_has_no_effect_is_no_difference(changed: Callable[..., Told], one: str, other: str) -> None:
    assert changed(one, other) == []


def test_giving_the_only_kind_of_people_a_name_changes_nothing(changed: Callable[..., Told]) -> None:
    people = (
        "subjects: {buyer: {table: customers, key: id, identifiers: {email: email}, refs: {crm: crm_ref}}}"
    )
    old = "subject: {table: customers, key: id}\nidentifiers: {email: email}\nrefs: {crm: crm_ref}"
    assert changed(old, people) == []


@pytest.mark.parametrize(
    ("one", "other", "where", "what"),
    [
        ("phone: delete", "phone: not_personal", "customers.phone", "was delete, now not personal"),
        (
            "email: {anonymise: random_unique}",
            "email: {retain: accounting}",
            "customers.email",
            "was anonymise (random_unique), now retain (accounting)",
        ),
        (
            "born: {anonymise: null}",
            "born: {anonymise: truncated_date}",
            "customers.born",
            "was anonymise (null), now anonymise (truncated_date to year)",
        ),
        (
            "phone: delete",
            "phone: {anonymise: keyed_hash}",
            "customers.phone",
            "was delete, now pseudonymise (keyed_hash)",
        ),
        (
            "phone: delete",
            "phone: {scrub: all}",
            "customers.phone",
            "was delete, now scrub (all identifiers)",
        ),
        (
            ", $.phone: {anonymise: null}}}",
            "}}",
            "customers.profile $.phone",
            "was anonymise (null), now left as it is",
        ),
        (
            "letter: {scrub: [email]}",
            "letter: not_personal",
            "customers.letter",
            "was scrub (email), now not personal",
        ),
        (
            "body: delete}",
            "body: {anonymise: null}}",
            "notes",
            "its rows were deleted, now anonymised; what stays in them: kind",
        ),
        (
            ", hint: delete}}",
            "}}",
            "customers (mentions customers).hint",
            "was delete",
        ),
        (
            "    mentions: {to: customers, on: {referred_by: id},"
            " columns: {referred_by: {anonymise: null}, hint: delete}}\n",
            "",
            "customers",
            "rows that mention people to customers by referred_by = id keep it;"
            " was: hint: delete; referred_by: anonymise (null)",
        ),
    ],
)
def test_what_is_no_longer_erased(
    changed: Callable[..., Told], one: str, other: str, where: str, what: str
) -> None:
    assert changed(one, other) == [(Group.NO_LONGER_ERASED, where, what)]


def test_a_table_that_is_now_said_to_be_without_personal_data(changed: Callable[..., Told]) -> None:
    gone = (
        "  notes:\n    link: {to: customers, on: {owner: id}, where: {kind: [Customer, Guest]}}\n"
        "    columns: {owner: delete, kind: not_personal, body: delete}\n"
    )
    said = "now without personal data; was: rows deleted"
    assert changed(gone, "", "[products,", "[notes, products,") == [(Group.NO_LONGER_ERASED, "notes", said)]
    assert changed(gone, "") == [(Group.NAMES, "notes", "gone from the map; was: rows deleted")]
    undecided = changed(gone, "", "version: 1", "version: 1\nreview: {notes: unsure}")
    assert undecided == [(Group.NAMES, "notes", "to be decided; was: rows deleted")]


def test_retained_rows_that_are_now_without_personal_data_are_kept_either_way(
    changed: Callable[..., Told],
) -> None:
    gone = (
        "  invoices:\n    link: {to: customers, on: {customer: id}}\n"
        "    columns: {customer: {retain: tax law}, number: {retain: tax law}}\n"
    )
    said = "now without personal data; was: rows retained"
    assert changed(gone, "", "[products,", "[invoices, products,") == [(Group.KEPT, "invoices", said)]


@pytest.mark.parametrize(
    ("one", "other", "where", "what"),
    [
        (
            "id: not_personal",
            "id: {anonymise: null}",
            "customers.id",
            "was not personal, now anonymise (null)",
        ),
        (
            "number: {retain: tax law}",
            "number: delete",
            "invoices.number",
            "was retain (tax law), now delete",
        ),
        (
            "{customer: {retain: tax law}, number: {retain: tax law}}",
            "{customer: delete, number: delete}",
            "invoices",
            "its rows were retained, now deleted",
        ),
        (
            "columns: {guest: {anonymise: null}}",
            "columns: {guest: {anonymise: null}, day: delete}",
            "visits (mentions customers).day",
            "now delete",
        ),
        (
            "    columns: {customer: {retain",
            "    mentions: {to: customers, on: {number: id}, columns: {number: delete}}\n"
            "    columns: {customer: {retain",
            "invoices",
            "rows that mention people to customers by number = id: number: delete",
        ),
        (
            "mentions: {to: customers, on: {guest: id}, columns: {guest: {anonymise: null}}}\n"
            "    columns: {guest: not_personal,",
            "link: {to: customers, on: {guest: id}}\n    columns: {guest: delete,",
            "visits",
            "rows were not a person's, now deleted",
        ),
    ],
)
def test_what_is_newly_erased(
    changed: Callable[..., Told], one: str, other: str, where: str, what: str
) -> None:
    assert (Group.NEWLY_ERASED, where, what) in changed(one, other)


def test_a_table_that_was_said_to_be_without_personal_data(changed: Callable[..., Told]) -> None:
    table = "  archive: {link: {to: customers, on: {who: id}}, columns: {who: delete}}\nrectify:"
    said = "was without personal data, now rows deleted; to customers by who = id"
    assert changed("rectify:", table, ", archive]", "]") == [(Group.NEWLY_ERASED, "archive", said)]
    kept = table.replace("who: delete", "who: {retain: law}")
    [(group, _, _)] = changed("rectify:", kept, ", archive]", "]")
    assert group is Group.KEPT


def test_a_document_that_is_now_erased_whole(changed: Callable[..., Told]) -> None:
    old = "{json: {$.name: delete, $.phone: {anonymise: null}}}"
    [(group, where, _)] = changed(old, "{anonymise: empty}")
    assert (group, where) == (Group.NEWLY_ERASED, "customers.profile")


def test_a_new_path_of_a_document(changed: Callable[..., Told]) -> None:
    said = "was left as it is, now delete"
    told = changed("$.name: delete,", "$.name: delete, $.street: delete,")
    assert told == [(Group.NEWLY_ERASED, "customers.profile $.street", said)]


def test_a_text_that_is_scrubbed_of_something_else(changed: Callable[..., Told]) -> None:
    told = changed("{scrub: [email]}", "{scrub: [phone]}")
    assert told == [(Group.OTHERWISE, "customers.letter", "was scrub (email), now scrub (phone)")]


def test_what_is_erased_in_another_way(changed: Callable[..., Told]) -> None:
    said = "was anonymise (fixed_text 'erased'), now anonymise (null)"
    assert changed("name: {anonymise: fixed_text}", "name: {anonymise: null}") == [
        (Group.OTHERWISE, "customers.name", said)
    ]


@pytest.mark.parametrize(
    ("other", "now"),
    [
        ("{retain: {basis: court, until: 2031-12-31}}", "retain (court; until 2031-12-31; then delete)"),
        ("{retain: {basis: support, until: 2032-12-31}}", "retain (support; until 2032-12-31; then delete)"),
        ("{retain: support}", "retain (support)"),
        (
            "{retain: {basis: support, until: 2031-12-31, then: {anonymise: null}}}",
            "retain (support; until 2031-12-31; then anonymise (null))",
        ),
        (
            "{retain: {basis: support, until: born + 10 years}}",
            "retain (support; until born + 10 years; then delete)",
        ),
        ("not_personal", "not personal"),
    ],
)
def test_what_is_kept_for_another_reason_or_time(changed: Callable[..., Told], other: str, now: str) -> None:
    assert changed("{retain: {basis: support, until: 2031-12-31}}", other) == [
        (Group.KEPT, "customers.crm_ref", f"was retain (support; until 2031-12-31; then delete), now {now}")
    ]


@pytest.mark.parametrize(
    ("one", "other", "lost", "won"),
    [
        (
            "[Customer, Guest]",
            "Customer",
            "to customers by owner = id, where kind is Customer or Guest",
            "to customers by owner = id, where kind is Customer",
        ),
        (
            "{to: customers, on: {customer: id}}",
            "{from: customers, on: {customer: id}}",
            "to customers by customer = id",
            "from customers by customer = id, unless somebody else's row points at it too",
        ),
        (
            "{to: customers, on: {customer: id}}",
            "{to: customers, on: {customer: id}, as: text}",
            "to customers by customer = id",
            "to customers by customer = id, where compared as texts",
        ),
    ],
)
def test_links_that_changed(changed: Callable[..., Told], one: str, other: str, lost: str, won: str) -> None:
    told = changed(one, other)
    assert {group for group, _, _ in told} == {Group.LINKS}
    assert [what for _, _, what in told] == [f"rows no longer belong {lost}", f"rows now belong {won}"]


@pytest.mark.parametrize(
    ("one", "other", "where", "what"),
    [
        ("key: id}", "key: email}", "customers", "were named by customers(id), now by customers(email)"),
        ("{email: email}", "{email: phone}", "customers", "found by email: was email, now phone"),
        ("{email: email}", "{}", "customers", "found by email: was email, is gone"),
        (
            "{crm: crm_ref}",
            '{crm: crm_ref, files: {template: "c/{id}/"}}',
            "customers",
            "known elsewhere as files: is new, now c/{id}/",
        ),
        (
            "{name: customers.name}",
            "{name: [customers.name, notes.body]}",
            "rectify",
            "corrected as name: was customers.name, now customers.name, notes.body",
        ),
    ],
)
def test_people_and_how_others_know_them(
    changed: Callable[..., Told], one: str, other: str, where: str, what: str
) -> None:
    assert changed(one, other) == [(Group.PEOPLE, where, what)]


def test_a_new_kind_of_people(changed: Callable[..., Told]) -> None:
    old = "subject: {table: customers, key: id}\nidentifiers: {email: email}\nrefs: {crm: crm_ref}"
    new = (
        "subjects:\n"
        "  customers: {table: customers, key: id, identifiers: {email: email}, refs: {crm: crm_ref}}\n"
        "  guest: {table: guests, key: id}"
    )
    table = "  guests: {columns: {id: delete}}\nrectify:"
    assert changed(old, new, "rectify:", table) == [
        (Group.PEOPLE, "guest", "a new kind of people, in guests"),
        (Group.NAMES, "guests", "new in the map: rows deleted; one row per guest, named by id"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "where", "what"),
    [
        ("phone: delete", "phone: delete\n      fax: delete", "customers.fax", "new: delete"),
        ("      phone: delete\n", "", "customers.phone", "gone; was: delete"),
        ("version: 1", "version: 1\nschemas: [crm]", "schemas", "were the search path, now crm"),
    ],
)
def test_new_and_gone_columns_and_schemas(
    changed: Callable[..., Told], one: str, other: str, where: str, what: str
) -> None:
    assert changed(one, other) == [(Group.NAMES, where, what)]


def test_the_gravest_comes_first(changed: Callable[..., Told]) -> None:
    told = changed(
        "phone: delete", "phone: not_personal",
        "id: not_personal", "id: {anonymise: null}",
        "{retain: {basis: support, until: 2031-12-31}}", "{retain: court}",
        "[Customer, Guest]", "Customer",
    )  # fmt: skip
    groups = list(dict.fromkeys(group for group, _, _ in told))
    assert groups == [Group.NO_LONGER_ERASED, Group.NEWLY_ERASED, Group.KEPT, Group.LINKS]
