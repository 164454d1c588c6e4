"""Which characters count as the same when a text is searched for a name.

Upper and lower case, composed and decomposed accents, and compatibility forms (full width, ligatures,
digits of other scripts). Under the C locale PostgreSQL folds only ASCII, so a regular expression can not do
this by itself: the alternatives are spelled out.
"""

from __future__ import annotations

import unicodedata
from functools import cache

# Above it are no letters with a case or a form that folds to others but the second ones of some ideographs;
# the plain ones stand for themselves only.
_LAST = 0x1FBFA
_IDEOGRAPHS = range(0x2F800, 0x2FA20)
_PLAIN = (range(0x3400, 0xA000), range(0xAC00, 0xF900), range(0x12000, 0x16A00), range(0x17000, 0x1CC00))
LONGEST = 4
# Turkish has an i with and one without a dot; either may have been made large or small by other rules.
_DOTLESS = "ı"
# Written without blanks between words, so that a name has no edges there.
_UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "HANGUL ", "THAI ", "LAO ", "KHMER ", "MYANMAR ", "BOPOMOFO ")


def fold(text: str) -> str:
    """The form in which two spellings of the same text are equal."""
    text = unicodedata.normalize("NFKD", text).casefold().replace(_DOTLESS, "i")
    text = unicodedata.normalize("NFKD", text).replace("i\u0307", "i")
    return "".join(_digit(letter) for letter in text)


def _digit(letter: str) -> str:
    value = unicodedata.decimal(letter, None)
    return letter if value is None else str(value)


@cache
def _spellings() -> dict[str, str]:
    """Folded text of up to four characters -> the single characters that fold to it."""
    found: dict[str, list[str]] = {}
    for code in (*range(_LAST + 1), *_IDEOGRAPHS):
        if any(code in block for block in _PLAIN):
            continue
        letter = chr(code)
        folded = fold(letter)
        if 0 < len(folded) <= LONGEST and folded != letter:
            found.setdefault(folded, []).append(letter)
    return {folded: "".join(letters) for folded, letters in found.items()}


def characters_for(folded: str) -> str:
    """The single characters that fold to this text; empty if there are none."""
    itself = unicodedata.normalize("NFC", folded)  # how Hangul is composed, 11,000 times
    return _spellings().get(folded, "") + (itself if len(itself) == 1 else "")


def is_unspaced(letter: str) -> bool:
    """Whether the letter's script puts no blanks between words."""
    return unicodedata.name(letter, "").startswith(_UNSPACED)


@cache
def word_letters() -> str:
    """All letters, marks and digits of scripts with blanks between words, as ranges for a [class]."""
    ranges: list[list[int]] = []
    for code in range(_LAST + 1):
        letter = chr(code)
        kind = unicodedata.category(letter)
        if kind[0] not in "LMN" and letter != "_":
            continue
        if is_unspaced(letter):
            continue
        if ranges and (ranges[-1][1] == code - 1 or _nothing_between(ranges[-1][1], code)):
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(_range(first, last) for first, last in ranges)


def _nothing_between(first: int, last: int) -> bool:
    """Whether only unassigned code points lie between: fewer ranges compile faster."""
    return last - first < 300 and all(unicodedata.category(chr(c)) == "Cn" for c in range(first + 1, last))


def _range(first: int, last: int) -> str:
    return chr(first) if first == last else f"{chr(first)}-{chr(last)}"
