"""The picture of a data map: everything is in it, nothing lies on anything else, names do no harm."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree as Xml

import pytest

from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.show.picture import draw
from effaced.datamap.show.picture_layout import ONLY_COUNTS_FROM, WIDTH, lay_out

ROOT = Path(__file__).parents[3]
MAP = """
    version: 1
    subjects:
      customer: {table: customers, key: id}
      employee: {table: staff, key: no}
    tables:
      customers:
        mentions: {to: customers, on: {referred_by: id}, columns: {referred_by: {anonymise: null}}}
        columns: {id: not_personal, name: {anonymise: fixed_text}, referred_by: delete}
      staff: {columns: {no: not_personal, name: {anonymise: null}}}
      addresses:
        link: {from: customers, on: {id: address_id}}
        columns: {id: delete, street: delete}
      notes:
        link: {to: customers, on: {owner_id: id}, where: {owner_type: Customer}, as: text}
        columns: {owner_id: delete, owner_type: not_personal}
      invoices:
        link: {to: customers, on: {customer_id: id}}
        columns: {customer_id: {retain: "tax law, ten years"}}
      folders:
        link: [{to: staff, on: {owner: no}}, {to: folders, on: {parent: id}}]
        columns: {id: delete, owner: delete, parent: delete}
      bills:
        mentions: {to: staff, on: {entered_by: no}, columns: {entered_by: {anonymise: null}}}
        columns: {id: not_personal, entered_by: not_personal}
    not_personal: [products, countries]
"""


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], DataMap]:
    def load(text: str) -> DataMap:
        path = tmp_path / "datamap.yaml"
        path.write_text(dedent(text), encoding="utf-8")
        return load_map(path)

    return load


def many(tables: int) -> str:
    """So many tables, each linked to one of those before."""
    lines = [
        "version: 1",
        "subject: {table: t0, key: id}",
        "tables:",
        "  t0: {columns: {id: not_personal, name: delete}}",
    ]
    for number in range(1, tables):
        near = number % 7 if number % 3 else number // 2
        lines.append(
            f"  t{number}: {{link: {{to: t{min(near, number - 1)}, on: {{p: id}}}},"
            f" columns: {{id: not_personal, p: delete, text_{number}: delete}}}}"
        )
    return "\n".join(lines)


def groups(svg: str) -> dict[str, tuple[str, list[str]]]:
    """Per table its classes and what is written in its box."""
    found = {}
    for group in Xml.fromstring(svg).iter("g"):
        texts = [each.text or "" for each in group.iter("text")]
        found[texts[0]] = (group.get("class", ""), texts[1:])
    return found


def written(svg: str, table: str) -> str:
    return " ".join(groups(svg)[table][1])


@pytest.fixture
def svg(read: Callable[[str], DataMap]) -> str:
    return draw(read(MAP), standalone=False)


@pytest.mark.parametrize(
    ("table", "fate", "words"),
    [
        ("customers", "changed", "rows anonymised"),
        ("addresses", "deleted", "rows deleted"),
        ("invoices", "retained", "rows retained"),
        ("bills", "others", "rows not a person's"),
    ],
)
def test_a_tables_fate_is_a_colour_and_a_word(svg: str, table: str, fate: str, words: str) -> None:
    classes, texts = groups(svg)[table]
    assert fate in classes.split()
    assert words in texts[0]


def test_a_keyed_hash_is_not_drawn_as_anonymisation(read: Callable[[str], DataMap]) -> None:
    hashed = MAP.replace("name: {anonymise: null}", "name: {anonymise: keyed_hash}")
    classes, texts = groups(draw(read(hashed), standalone=False))["staff"]
    assert "pseudonymised" in classes.split()
    assert "rows pseudonymised" in texts[0]
    assert "pseudonymise" in texts


def test_the_legend_names_what_is_there_and_nothing_else(read: Callable[[str], DataMap], svg: str) -> None:
    def legend(drawn: str) -> list[str]:
        return [
            each.text or ""
            for each in Xml.fromstring(drawn).iter("text")
            if each.get("class") == "map-legend"
        ]

    assert legend(svg) == [
        "rows deleted",
        "rows anonymised",
        "rows retained",
        "rows not a person's, only mention one",
        "belongs to",
        "is pointed at by",
        "mentions",
    ]
    assert legend(draw(read(many(3)), standalone=False)) == ["rows deleted", "belongs to"]


def test_the_peoples_tables_are_marked_with_their_kind(svg: str) -> None:
    marked = {table: texts[0] for table, (classes, texts) in groups(svg).items() if "person" in classes}
    assert marked == {
        "customers": "the people: customer · rows anonymised",
        "staff": "the people: employee · rows anonymised",
    }


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("notes", "to customers: owner_id = id"),
        ("notes", "where owner_type is Customer where compared as texts"),
        ("addresses", "from customers: id = address_id"),
        ("addresses", "unless somebody else's row points at it"),
        ("bills", "mentions staff: entered_by = no entered_by: anonymise (null)"),
        ("folders", "to folders: parent = id"),
        ("customers", "anonymise fixed_text 'erased' name"),
        ("invoices", "retain tax law, ten years customer_id"),
        ("notes", "delete owner_id not personal owner_type"),
    ],
)
def test_a_box_tells_links_conditions_and_what_happens_to_columns(svg: str, table: str, said: str) -> None:
    assert said in written(svg, table)


def test_every_link_is_an_arrow_of_its_kind(svg: str) -> None:
    arrows = [
        (each[0].text, (each.get("class") or "").split()[1], "marker-start" in each.attrib)
        for each in Xml.fromstring(svg).findall("path")
        if len(each)
    ]
    assert sorted(arrows) == [
        ("addresses from customers", "from", True),
        ("bills mentions staff", "mentions", False),
        ("customers mentions customers", "mentions", False),
        ("folders to folders", "to", False),
        ("folders to staff", "to", False),
        ("invoices to customers", "to", False),
        ("notes to customers", "to", False),
    ]


def test_tables_without_personal_data_are_listed_below(svg: str) -> None:
    texts = [each.text for each in Xml.fromstring(svg).findall("text")]
    assert texts[-2:] == ["Without personal data (2)", "countries, products"]


def test_tables_that_nobody_has_decided_about_are_listed_too(read: Callable[[str], DataMap]) -> None:
    svg = draw(read(MAP + "    review: {guests: may be people}\n"))
    texts = [each.text for each in Xml.fromstring(svg).iter() if each.tag.endswith("text")]
    assert texts[-2:] == ["To be decided (1)", "guests"]


def test_the_description_says_what_the_picture_shows(svg: str) -> None:
    [description] = Xml.fromstring(svg).findall("desc")
    assert "customer in customers and employee in staff" in str(description.text)
    assert "notes: rows are deleted; to customers by owner_id = id, where" in str(description.text)


def test_within_a_page_it_brings_no_style_of_its_own(svg: str) -> None:
    tree = Xml.fromstring(svg)
    assert [each.tag for each in tree.iter() if each.tag == "style" or "style" in each.attrib] == []


def test_a_file_of_its_own_has_colours_for_light_and_dark(read: Callable[[str], DataMap]) -> None:
    alone = draw(read(MAP))
    assert "prefers-color-scheme: dark" in alone
    assert ".map-bar.deleted" in alone


def test_names_are_text_whatever_they_hold(read: Callable[[str], DataMap]) -> None:
    name = r"<script>&\"'\x01"
    svg = draw(
        read(f"""
        version: 1
        subject: {{table: "{name}", key: id}}
        tables:
          "{name}": {{columns: {{id: not_personal, "<b>": delete}}}}
        """)
    )
    tree = Xml.fromstring(svg)
    [box] = [each for each in tree.iter() if each.get("class") == "map-table deleted person"]
    assert [each.text for each in box][3] == "<script>&\"'\ufffd"
    assert [each.tag for each in tree.iter() if each.tag.endswith(("script", "}b"))] == []


def test_the_same_map_gives_the_same_picture(read: Callable[[str], DataMap]) -> None:
    assert draw(read(MAP)) == draw(read(MAP))


@pytest.mark.parametrize("tables", [2, 30, 300])
def test_no_table_lies_on_another_or_outside(read: Callable[[str], DataMap], tables: int) -> None:
    layout = lay_out(read(many(tables)), top=80)
    assert len(layout.boxes) == tables
    for box in layout.boxes:
        assert 0 <= box.x <= layout.width - WIDTH
        assert 80 <= box.y <= layout.height - box.height
    for one, other in combinations(layout.boxes, 2):
        if one.column == other.column:
            assert one.y + one.height < other.y or other.y + other.height < one.y
        else:
            assert abs(one.x - other.x) > WIDTH


def test_what_is_further_from_the_people_stands_further_right(read: Callable[[str], DataMap]) -> None:
    layout = lay_out(read(many(60)), top=80)
    columns = {box.rule.name: box.column for box in layout.boxes}
    assert columns["t0"] == 0
    for box in layout.boxes[1:]:
        assert columns[box.rule.name] > columns[box.rule.links[0].to]


def test_rails_run_above_all_tables(read: Callable[[str], DataMap]) -> None:
    layout = lay_out(read(many(120)), top=80)
    highest = min(box.y for box in layout.boxes)
    heights = [float(found[1]) for arrow in layout.arrows if (found := re.search(r" V(\S+) H", arrow.path))]
    assert heights
    assert 60 < min(heights) <= max(heights) < highest


def test_a_big_map_counts_columns_instead_of_naming_them(read: Callable[[str], DataMap]) -> None:
    svg = draw(read(many(ONLY_COUNTS_FROM)))
    assert "text_7<" not in svg
    assert "2 columns" in svg
    assert "1 column" in svg
    assert "1 columns" not in svg


def test_the_picture_in_the_documents_is_the_demos() -> None:
    """If not: `effaced datamap picture --map effaced/demo/datamap.yaml -o docs/img/demo-datamap.svg`."""
    drawn = (ROOT / "docs" / "img" / "demo-datamap.svg").read_text(encoding="utf-8")
    assert drawn == draw(load_map(ROOT / "effaced" / "demo" / "datamap.yaml")) + "\n"
