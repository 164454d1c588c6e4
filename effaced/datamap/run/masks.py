"""Values of people reduced to their shape: enough to recognise a kind of data, never the data."""

from __future__ import annotations

import re
from typing import Any

DOT = "•"
HIDDEN = DOT * 4
NOTHING = "–"
_LONGEST = 48
_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w]|_", re.UNICODE)
_KEPT = set(" @.,:;-_/+()'")
_ENDING = re.compile(r"\.[^\W\d_]{2,6}$")


def mask(value: Any) -> str:
    """`Ada Okafor` becomes `A•••• O••••`. The length of words is not shown; short texts are hidden whole."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return _mask_text(value)
    if isinstance(value, bool):
        return HIDDEN
    if isinstance(value, bytes | bytearray | memoryview):
        return "(binary)"
    if isinstance(value, dict | list | tuple):
        return f"({'document' if isinstance(value, dict) else 'list'})"
    return "".join(DOT if each.isalnum() else each for each in str(value))[:_LONGEST]


def _mask_text(text: str) -> str:
    # Only the end is searched: it is at most a dot, six letters and a line break.
    found = _ENDING.search(text[-8:]) if "@" in text else None
    ending = found[0] if found else ""
    pieces = _WORD.findall(text.removesuffix(ending))
    words = [each for each in pieces if each.isalpha()]
    # A single short word, `male` or `Kim`, could be guessed from its first letter.
    alone = len(words) == 1 and len(words[0]) < 6
    masked = "".join(_piece(each, alone=alone) for each in pieces)
    cut = f"{masked[:_LONGEST]}…" if len(masked) > _LONGEST else masked
    return cut + ending


def _piece(piece: str, *, alone: bool) -> str:
    if piece.isdigit():
        return DOT * len(piece)
    if piece.isalpha():
        return HIDDEN if alone or len(piece) < 3 else piece[0] + HIDDEN
    return piece if piece in _KEPT else DOT
