"""Finding a person's identifiers in free text, however they are written."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from effaced.datamap.surrogates.folding import LONGEST, characters_for, fold
from effaced.datamap.surrogates.scrub_pattern import ERASED, build_pattern, scrub

EMAIL, NAME, PHONE = "alice@example.org", "Alice Strauß", "+49 170 1234567"


def scrubbed(text: str, *values: str) -> str:
    return scrub(text, build_pattern(values))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (EMAIL, "alice@example.org"),
        (EMAIL, "Alice@Example.ORG"),
        (EMAIL, "alice+newsletter@example.org"),
        (EMAIL, "alice%40example.org"),
        (EMAIL, "alice%2Btag%40example.org"),
        (EMAIL, "ａｌｉｃｅ＠ｅｘａｍｐｌｅ．ｏｒｇ"),
        ("alice+shop@example.org", "alice@example.org"),
        ("alice+shop@example.org", "ALICE+other@example.org"),
        ("müller@straße.example", "MÜLLER@STRASSE.example"),
        (NAME, "ALICE STRAUSS"),
        (NAME, "alice strauss"),
        (NAME, "Alice\u00a0Strauß"),
        (NAME, "Alice\n  Strauß"),
        ("STRAUSS", "Strauß"),
        ("José", unicodedata.normalize("NFD", "José")),
        (unicodedata.normalize("NFD", "José"), "JOSÉ"),
        ("Nguyễn", unicodedata.normalize("NFD", "NGUYỄN")),
        ("Nguyễn", "Nguyê\u0303n"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("İpek", "ipek"),
        ("İpek", "IPEK"),
        ("ipek", "İPEK"),
        ("ipek", "i\u0307pek"),
        ("IŞIK", "ışık"),
        ("ışık", "Işık"),
        ("Пётр", "ПЁТР"),
        ("Պետրոս", "ՊԵՏՐՈՍ"),
        ("Griffin", "Griﬃn"),
        ("Griﬃn", "GRIFFIN"),
        ("O'Brien", "O’Brien"),
        ("Anna-Maria", "Anna‑Maria"),
        ("김철수", unicodedata.normalize("NFD", "김철수")),
        ("c-4711", "C-4711"),
        (PHONE, "+49 170 1234567"),
        (PHONE, "0049 (170) 123-45.67"),
        (PHONE, "491701234567"),
        (PHONE, "0170/1234567"),
        (PHONE, "٠١٧٠١٢٣٤٥٦٧"),
        ("0170 1234567", "+49 (0) 170 1234567"),
        (PHONE, "+49 (0)170 1234567"),
        ("+49 (0)170 1234567", "+49 (0)170 1234567"),
        ("+49 (0)170 1234567", "+491701234567"),
        ("0049 (0) 170 1234567", "0170 1234567"),
        ("+1 (0) 555 1234567", "001 555 1234567"),
        ("0170 1234567", "0170-12 34 567"),
        ("(555) 123-4567", "+1 555.123.4567"),
        ("a.b*c+[x]", "A.B*C+[X]"),
        (r"a\d{9}$", r"A\D{9}$"),
    ],
)
def test_an_identifier_is_found_however_it_is_written(value, text):
    assert scrubbed(f"see <{text}>, please", value) == f"see <{ERASED}>, please"
    assert scrubbed(f"see {text} please", value) == f"see {ERASED} please"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ann", "annual joann annä änn anna\u0308 ann1 ann_x"),
        ("ann", "Annа"),  # the last letter is Cyrillic
        (EMAIL, "malice@example.org mary.alice@example.org alice@example.organic alice.x@example.org"),
        (EMAIL, "alice at example.org, alice@example.com"),
        (PHONE, "1491701234567 4917012345678 170 1234567"),
        ("a.c", "abc"),
        ("José", "Jose"),
        ("Müller", "Mueller Muller"),
        ("Алла", "Аллах"),
        ("1234567", "123456 12345678"),
    ],
)
def test_what_only_looks_like_it_is_left(value, text):
    assert scrubbed(text, value) == text


@pytest.mark.parametrize("value", ["", "  ", "ab", "é", "x" * 321, "a\0bc", "ﷺ" * 100])
def test_what_is_too_short_or_too_long_is_not_looked_for(value):
    assert build_pattern([value]) is None


def test_scripts_without_blanks_have_no_edges_of_words():
    assert scrubbed("昨日田中太郎さんが来た", "田中太郎") == f"昨日{ERASED}さんが来た"
    assert scrubbed("김철수는 왔다", "김철수") == f"{ERASED}는 왔다"


def test_the_longest_identifier_wins():
    assert scrubbed("Alice Strauß and Alice", "Alice", NAME) == f"{ERASED} and {ERASED}"


def test_a_name_that_touches_a_number_goes_with_it():
    assert scrubbed("ann01701234567", "ann", "01701234567") == ERASED * 2


@pytest.mark.parametrize("value", ["erased", "[erased]", "Erased", "d][e", "erased] [erased", "sed"])
def test_what_stands_in_its_place_is_never_found_again(value):
    once = scrubbed("Ann is erased", value, "Ann")
    assert once == scrubbed(once, value, "Ann")


HOSTILE = ["(" * 300, "[" * 300, "\\" * 300, "s" * 300, "ss s" * 75, "1" * 300, "{9}" * 90]


@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_makes_the_search_slow_or_break(value):
    found = build_pattern([value])
    assert found is not None
    assert len(found) < 100_000
    assert scrub(f"x {value} y", found) == f"x {ERASED} y"


fragments = st.sampled_from(
    [
        "ann",
        "Ann",
        EMAIL,
        "+x",
        "0170 1234567",
        "田中太郎",
        " ",
        "-",
        ".",
        "ü",
        "1",
        "STRAUSS",
        ERASED,
        "\u0301",
        "%40",
    ]
)


@given(st.lists(fragments, max_size=8).map("".join))
def test_a_scrubbed_text_holds_nothing_more_to_scrub(text):
    finding = build_pattern(["ann", EMAIL, "0170 1234567", "田中太郎", "Strauß"])
    assert finding is not None
    once = scrub(text, finding)
    assert not re.search(finding, once)


letters = st.characters(categories=["L", "N"]).filter(
    # Not the signs that stand for a whole sentence, or for a mark on nothing.
    lambda letter: len(folded := fold(letter)) <= LONGEST and " " not in folded
)
words = st.text(letters, min_size=3, max_size=20)


@example("0¼¼", "NFC")  # its digits, side by side, have signs of their own: ㊶
@given(words, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_any_value_is_found_in_every_form(value, form):
    found = build_pattern([value])
    if found is not None:
        text = unicodedata.normalize(form, value)
        assert scrub(text, found) == ERASED


def test_no_letter_is_left_out_that_others_are_taken_for() -> None:
    """All of Unicode, as this Python knows it, but for Hangul and what folds to many letters."""
    lost = [
        letter
        for code in range(0x110000)
        if not 0xAC00 <= code < 0xE000
        and (folded := fold(letter := chr(code))) != letter
        and 0 < len(folded) <= LONGEST
        and letter not in characters_for(folded)
    ]
    assert lost == []
