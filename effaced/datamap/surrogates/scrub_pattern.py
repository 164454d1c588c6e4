"""The regular expression that finds a person's identifiers in free text, one for both databases.

It uses only what PostgreSQL's and Python's expressions have in common. Its matches are replaced by
`[erased]`, which it must never match itself: scrubbing twice must change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from effaced.datamap.surrogates.folding import LONGEST, characters_for, fold, is_unspaced, word_letters

ERASED = "[erased]"
SHORTEST = 3
LONGEST_VALUE = 320
"""No e-mail address is longer. What is, is a text and no identifier."""
PASSES = 2
"""A name that touches a telephone number is a word of its own only once that is gone."""

_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
_PHONE = re.compile(r"\+?[0-9 ().\-/\u00a0]+")
_FEWEST_DIGITS = 7
_GAP = r"[ ().\-/\u00a0]{0,3}"
_BLANK = "[\t-\r\x1c-\x20\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
_ALIKE = {each: same for same in ("'’ʼ`´", "-‐‑–") for each in same}
_SEGMENT = 4


def build_pattern(values: Iterable[str]) -> str | None:
    """Matches any of the values as a whole word; None if none of them can be searched for."""
    found: dict[str, set[str]] = {}
    for value in values:
        for around, form in _search_forms(value.strip()):
            found.setdefault(around, set()).add(form)
    # The longest first: Python takes the first that fits, PostgreSQL the longest. One look around for all
    # that share it: PostgreSQL is slow with many.
    parts = [
        around.format("|".join(sorted(forms, key=lambda each: (-len(each), each))))
        for around, forms in sorted(found.items(), reverse=True)
    ]
    return "|".join(parts) or None


def scrub(text: str, finding: str | None) -> str:
    """The text with every match replaced: for SQLite, what PostgreSQL does in SQL."""
    if finding is None:
        return text
    compiled = re.compile(finding)
    for _ in range(PASSES):
        text = compiled.sub(ERASED, text)
    return text


def _search_forms(value: str) -> Iterator[tuple[str, str]]:
    """Pairs of patterns: what may stand around the value, with `{}` for it, and how it may be written."""
    if "\0" in value or not SHORTEST <= len(value) <= LONGEST_VALUE >= len(fold(value)):
        return
    if _EMAIL.fullmatch(value):
        forms = _email(value)
    elif _PHONE.fullmatch(value) and sum(each.isdigit() for each in value) >= _FEWEST_DIGITS:
        forms = [("(?<![0-9])(?:{})(?![0-9])", form) for form in _phone(value)]
    elif all(is_unspaced(letter) for letter in value if not letter.isspace()):
        forms = [("(?:{})", _letters(value))]
    else:
        forms = [(f"(?<![{word_letters()}])(?:{{}})(?![{word_letters()}])", _letters(value))]
    if not _finds_itself(fold(value), forms):
        yield from forms


def _finds_itself(folded: str, forms: list[tuple[str, str]]) -> bool:
    """Whether the pattern would match `[erased]`: somebody may be called Erased."""
    if not set(folded) <= set(f"{ERASED} "):
        return False
    return any(re.search(around.format(form), f"{ERASED}{ERASED} {ERASED}") for around, form in forms)


def _email(value: str) -> list[tuple[str, str]]:
    local, _, domain = value.rpartition("@")
    base = local.partition("+")[0] or local
    tag = r"(?:(?:\+|%2[Bb])[0-9A-Za-z._+\-]{1,64})?"
    form = f"{_letters(base)}{tag}(?:@|%40|\uff20){_letters(domain)}"
    after = rf"(?![{word_letters()}\-])"
    # Somebody else's address may end like this one: mary.ann@ is not ann@. In a link, %3C may come before.
    return [
        (rf"(?<![{word_letters()}.+\-])(?:{{}}){after}", form),
        (rf"%[0-9A-Fa-f][0-9A-Fa-f](?:{{}}){after}", form),
    ]


def _phone(value: str) -> list[str]:
    """The number with any separators, as dialled from abroad and at home."""
    folded = fold(value)
    if folded.startswith(("+", "00")):
        # The zero in +49 (0)30 is for those who dial at home, and no digit of the number.
        folded = folded.replace("(0)", "")
    digits = "".join(each for each in folded if each.isdigit())
    if value.startswith("+") or digits.startswith("00"):
        digits = digits.removeprefix("00")
        # How long the country's code is, is not known: one to three digits.
        home = [_dialled("0" + digits[code:]) for code in (1, 2, 3) if len(digits) - code >= _FEWEST_DIGITS]
        code, rest = digits[:3], _dialled(digits[3:])
        abroad = "".join(rf"{_dialled(digit)}{_GAP}(?:\(0\){_GAP})?" for digit in code) + rest
        return [rf"(?:(?:\+|00){_GAP})?{abroad}", *home]
    rest = digits.lstrip("0")
    if len(rest) < _FEWEST_DIGITS - 1:
        return [_dialled(digits)]
    return [_dialled(digits), rf"(?:\+|00)[0-9]{{1,3}}{_GAP}(?:\(0\))?{_GAP}{_dialled(rest)}"]


def _dialled(digits: str) -> str:
    return _GAP.join(_alternatives(digit) for digit in digits)


def _letters(text: str) -> str:
    """Every spelling of a text."""
    # Where the text's own characters begin, folded: what a character stands for is not taken apart.
    seams = set(accumulate(len(fold(letter)) for letter in text))
    parts = []
    for piece in re.finditer(r"\s+|\S+", fold(text)):
        if piece[0].isspace():
            parts.append(_BLANK)
        else:
            parts += [_segment(each) for each in _segments(piece[0], {at - piece.start() for at in seams})]
    return "".join(parts)


def _segments(folded: str, seams: set[int]) -> Iterator[str]:
    """Pieces that no single character spans; where many could, short ones that end at a seam."""
    start = end = 0
    for at in range(len(folded)):
        long = at - start >= (_SEGMENT if at in seams else 2 * _SEGMENT)
        if (at >= end or long) and at > start:
            yield folded[start:at]
            start = at
        reach = next(
            (
                n
                for n in range(LONGEST, 1, -1)
                if at + n <= len(folded) and characters_for(folded[at : at + n])
            ),
            1,
        )
        end = max(end, at + reach)
    if folded:
        yield folded[start:]


def _segment(folded: str) -> str:
    ways = list(_splits(folded))
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(sorted(ways, key=len, reverse=True))})"


def _splits(folded: str) -> Iterator[str]:
    """Every way to write it with characters that each stand for one or more of the folded ones."""
    if not folded:
        yield ""
        return
    for length in range(1, min(LONGEST, len(folded)) + 1):
        head = folded[:length]
        if length == 1 or characters_for(head):
            for rest in _splits(folded[length:]):
                yield _alternatives(head) + rest


def _alternatives(folded: str) -> str:
    letters = characters_for(folded) + (_ALIKE.get(folded, folded) if len(folded) == 1 else "")
    each = "".join(_escaped(letter) for letter in dict.fromkeys(letters))
    one = each if len(set(letters)) == 1 else f"[{each}]"
    # The dot of a Turkish capital, when it has been taken apart.
    return f"{one}\u0307?" if folded == "i" else one


def _escaped(letter: str) -> str:
    return f"\\{letter}" if letter.isascii() and not letter.isalnum() and letter not in " _" else letter
