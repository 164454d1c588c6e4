"""What do we know about people?"""

from __future__ import annotations

import html
import re
from pathlib import Path
from xml.etree import ElementTree as Xml

from sqlalchemy import text

from tests.browser.seed import DATAMAP, House
from tests.integration.console.conftest import Visitor

PAGE = "/console/datamap"


def words(page: str) -> str:
    """The page as it is read, without the picture: tags gone, spaces single."""
    page = re.sub(r'<svg class="map[ "].*?</svg>', "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


def file_of(house: House) -> Path:
    return house.runtime.settings.datamap


def test_tables_columns_reasons_and_people_are_told(house: House, cleo: Visitor) -> None:
    page = words(cleo.get(PAGE).text)
    for said in (
        f"Hash {house.runtime.datamap.hash[:12]}",
        "People customers named by id; found by email; known elsewhere as person, paper_file",
        "orders Deleted to customers by customer_id = id delete id, customer_id, article",
        "customers the people Anonymised one row per person, named by id",
        "invoices Retained to customers by customer_id = id not personal id"
        " tax law, ten years; until billed_on + 10 years; then delete customer_id, billed_on",
    ):
        assert said in page


def test_the_picture_is_in_the_page_and_brings_no_style(house: House, ada: Visitor) -> None:
    [svg] = re.findall(r'<svg class="map[ "].*?</svg>', ada.get(PAGE).text, flags=re.DOTALL)
    tree = Xml.fromstring(svg)
    names = {group[3].text for group in tree.iter("g")}
    assert names == {"customers", "orders", "invoices"}
    assert "style" not in svg


def test_a_table_or_column_is_found_with_its_way_to_the_people(house: House, ada: Visitor) -> None:
    page = ada.get(f"{PAGE}?find=BILLED").text
    [svg] = re.findall(r'<svg class="map[ "].*?</svg>', page, flags=re.DOTALL)
    assert {group[3].text for group in Xml.fromstring(svg).iter("g")} == {"customers", "invoices"}
    assert house.runtime.datamap.hash[:12] in svg
    told = words(page)
    assert "1 of 3 tables. Show all" in told
    assert "invoices Retained to customers by customer_id = id" in told
    assert "orders Deleted" not in told


def test_a_name_that_is_nowhere_is_an_empty_page_with_a_way_back(ada: Visitor) -> None:
    page = words(ada.get(f"{PAGE}?find=%3Cb%3Enothing").text)
    assert "No table or column matches" in page
    assert "As a picture" not in page
    assert "Show all" in page


def test_a_table_without_people_is_found_without_a_picture(house: House, ada: Visitor) -> None:
    file_of(house).write_text(DATAMAP + "not_personal: [wishes]\n")
    page = words(ada.get(f"{PAGE}?find=wish").text)
    assert "Without personal data 1 table wishes" in page
    assert "As a picture" not in page


def test_the_picture_can_be_taken_away_as_a_file(house: House, ada: Visitor) -> None:
    answer = ada.get(f"{PAGE}/picture")
    assert answer.mimetype == "image/svg+xml"
    name = f'attachment; filename="datamap-{house.runtime.datamap.hash[:12]}.svg"'
    assert answer.headers["Content-Disposition"] == name
    assert Xml.fromstring(answer.text).tag.endswith("svg")


def test_a_map_that_fits_has_no_problems(ada: Visitor) -> None:
    assert "does not fit" not in ada.get(PAGE).text


def test_what_the_map_does_not_cover_is_told_first_with_its_line(house: House, ada: Visitor) -> None:
    _ = house.runtime.plan
    with house.runtime.db.begin() as session:
        session.execute(text("CREATE TABLE wishes (id integer, customer_id integer)"))
        session.execute(text("ALTER TABLE orders ADD COLUMN engraving text"))
    page = words(ada.get(PAGE).text)
    told = page.index("The map does not fit the database 2 problems")
    assert told < page.index("As a picture")
    assert "datamap.yaml:8 wishes: the table is not declared; put it under tables or not_personal" in page
    assert "datamap.yaml:15 orders.engraving: the column is not declared" in page


def test_notes_are_there_to_be_unfolded(ada: Visitor) -> None:
    page = words(ada.get(PAGE).text)
    assert "2 notes fits the database, but should be checked" in page
    assert "orders.link: no index begins with customer_id" in page


def test_a_file_that_says_something_else_by_now_is_told(house: House, ada: Visitor) -> None:
    said = "The file has changed since effaced was started."
    assert said not in ada.get(PAGE).text
    file_of(house).write_text(DATAMAP.replace("article: delete", "article: not_personal"))
    assert said in ada.get(PAGE).text
    file_of(house).write_text("version: 7")
    assert said in ada.get(PAGE).text


def test_a_map_that_cannot_be_read_is_a_page_that_says_why(house: House, ada: Visitor) -> None:
    file_of(house).write_text("version: 1\nsubject: {table: customers, key: id}\n")
    answer = ada.get(PAGE)
    assert answer.status_code == 200
    page = words(answer.text)
    assert "The data map can't be read 1 problem" in page
    assert "datamap.yaml:1 the data map: 'tables' is missing" in page
    assert "There is no data map to show" in page
    assert "Picture as SVG" not in page


def test_names_in_the_map_are_text(house: House, ada: Visitor) -> None:
    file_of(house).write_text(DATAMAP + 'not_personal: ["<script>alert(1)</script>"]\n')
    page = ada.get(PAGE).text
    assert "<script>alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
