"""What the columns of a generated world hold, and what its map may say about them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Rule = Any
"""As it stands in the map."""
SEPARATOR = " ; "
ERASED = "[erased]"

# Six people, the last three of whom are of another kind, by the kinds of their identifiers. With each value
# the ways in which a text may write it; what is beside them is somebody else's or nobody's.
IDENTIFIERS: list[dict[str, tuple[str, ...]]] = [
    {
        "email": ("ann@shop.example", "ANN@SHOP.Example", "ann+news@shop.example", "ann%40shop.example"),
        "name": ("Ann Strauß", "ANN STRAUSS", "ann\u00a0strauß"),
        "phone": ("+49 30 1234567", "030/123 45 67", "0049301234567"),
    },
    {
        "email": ("rob.b@shop.example", "Rob.B@shop.example", "rob.b+x.y@shop.example"),
        "name": ("Bob", "BOB", "bob"),
        "phone": ("030 7654321", "+49 (0)30 7654321", "030-7654321"),
    },
    {
        "email": ("carol@c.example", "Carol@C.example"),
        "name": ("Zoë Ünal", unicodedata.normalize("NFD", "zoë ünal"), "ZOË ÜNAL"),
        "phone": ("0170 1112223", "0170.111.22.23"),
    },
    {
        "email": ("eve@staff.example", "EVE@staff.example"),
        "name": ("Eve Ng", "eve  ng"),
        "phone": ("+1 212 5550100", "12125550100"),
    },
    {
        "email": ("o@staff.example", "O%40staff.example"),
        "name": ("Ólaf Øst", "ÓLAF ØST"),
        "phone": ("0221 998877", "0221/99 88 77"),
    },
    {"email": ("yuki@staff.example",), "name": ("山田",), "phone": ("+81 3 12345678",)},
]
DECOYS = (
    "x", "gone", "mary.ann@shop.example", "ann@shop.examples", "Strauß", "bobby", "Carola", "030 76543210",
    "it's 100% \"so\"\\", "Ünï_'", ERASED, "{}", "a@b.example",
)  # fmt: skip
TOKENS: dict[str, tuple[int, str]] = {
    each: (person, kind)
    for person, known in enumerate(IDENTIFIERS)
    for kind, ways in known.items()
    for each in ways
}
_WORDS = (*TOKENS, *DECOYS)

RETAIN = {"retain": "tax law, ten years"}
KEEPS: tuple[Rule, ...] = ("not_personal", RETAIN)
NULLS: tuple[Rule, ...] = ("delete", {"anonymise": None}, {"anonymise": "null"})
HEX = "0123456789abcdef"
WORD, MAIL = "gone", "gone@erased.invalid"


class Pick:
    """What is chosen, one number at a time: that is cheap, and shrinks towards the first of each."""

    def __init__(self, number: Callable[[int], int]) -> None:
        self._number = number

    def one(self, options: Sequence[Any]) -> Any:
        return options[self._number(len(options))] if len(options) > 1 else options[0]

    def upto(self, most: int) -> int:
        return self._number(most + 1)

    def once_in(self, times: int) -> bool:
        return self._number(times) == times - 1

    def some(self, options: Sequence[Any], most: int) -> list[Any]:
        return list(dict.fromkeys(self.one(range(len(options))) for _ in range(self.upto(most))))


@dataclass
class Column:
    """A column as the world knows it. `check` and `made_from` have `{}` for the name of a column."""

    name: str
    kind: str
    type: str
    nullable: bool = False
    unique: bool = False
    rule: Rule = "delete"
    length: int | None = None
    check: str = ""
    made_from: str | None = None
    """The column whose length the database keeps here."""
    identifier: str | None = None

    @property
    def strategy(self) -> str:
        return self.rule if isinstance(self.rule, str) else next(iter(self.rule))

    @property
    def nulls(self) -> bool:
        return self.rule in NULLS

    @property
    def keeps_row(self) -> bool:
        return self.strategy in ("anonymise", "json", "scrub", "retain")

    @property
    def changes(self) -> bool:
        return self.strategy in ("delete", "anonymise", "json", "scrub")


@dataclass(frozen=True)
class Kind:
    """One kind of content: its type on each database, what is in it, what can become of it."""

    types: dict[str, tuple[str, ...]]
    values: Callable[[Pick, Column], Any]
    rules: Callable[[Pick, Column], list[Rule]]
    distinct: Callable[[int, Column], Any] | None = None
    """A value of its own for each row number, where the column can be UNIQUE."""
    lengths: tuple[int | None, ...] = (None,)
    checks: tuple[str, ...] = ("",)


def fixed(value: Any) -> Rule:
    return {"anonymise": "fixed", "value": value}


def anonymise(*surrogates: str) -> list[Rule]:
    return [{"anonymise": each} for each in surrogates]


def _texts(pick: Pick, column: Column) -> str:
    if pick.once_in(6):
        digits = 32 if column.length is None else max(0, min(32, column.length - 7))
        surrogates = ["", WORD, "erased-" + (HEX * 2)[:digits], f"erased-{HEX[:8]}", "hashed-k9-" + HEX * 4]
        return _short(pick.one(surrogates), column)
    return _short(SEPARATOR.join(pick.one(_WORDS) for _ in range(1 + pick.upto(3))), column)


def _short(text: str, column: Column) -> str:
    """As many whole words as there is room for."""
    while column.length is not None and len(text) > column.length:
        text = text.rpartition(SEPARATOR)[0]
    return text


def _text_rules(pick: Pick, column: Column) -> list[Rule]:
    room = 10_000 if column.length is None else column.length
    rules: list[Rule] = []
    for surrogate, needed in (("random_unique", 23), ("random_email", 38), ("random_uuid", 32)):
        rules += anonymise(surrogate) if room >= needed else []
    if not column.unique:
        rules += [{"anonymise": "fixed_text", "text": WORD}, fixed(WORD), *anonymise("empty")]
        rules += anonymise("keyed_hash") if room >= 88 else []
        rules += [
            {"scrub": "all"},
            {"scrub": pick.one([["name"], ["email", "phone"], ["name", "email"]])},
        ] * 2
    return rules


def _mail_rules(_: Pick, column: Column) -> list[Rule]:
    return anonymise("random_email") + ([] if column.unique else [{"anonymise": "fixed_text", "text": MAIL}])


def _numbers(pick: Pick, column: Column) -> Any:
    values = [0, 1, 9, 7, LOWEST.get(column.type.split("(")[0], (0, 0))[0] + 5, -5]
    return pick.one(values[:4] if column.check else values)


def _number_rules(_: Pick, column: Column) -> list[Rule]:
    random = [] if column.check or (column.unique and column.type == "smallint") else ["random_number"]
    return anonymise(*random) + ([] if column.unique else [fixed(0), fixed(7)])


LOWEST = {
    "smallint": (1 - 2**15, -(2**14)),
    "integer": (1 - 2**31, -(2**30)),
    "bigint": (1 - 2**53, -(2**52)),
    "numeric": (1 - 10**10, -5 * 10**9),
}
"""Where random numbers are: the lower half of what the column holds, and of 53 bits."""
_DAYS = ("1980-02-15", "1980-01-01", "2000-02-29", "1999-12-31", "1980-02-01")
_DATES = [{"anonymise": "truncated_date", "to": "year"}, {"anonymise": "truncated_date", "to": "month"}]
_DATES += anonymise("truncated_date")


def _json_rules(pick: Pick, column: Column) -> list[Rule]:
    paths = pick.some(list(JSON_PATHS), 3) or [0]
    chosen = [list(JSON_PATHS)[each] for each in paths]
    # Two paths to one place are refused.
    if "$.tags[*]" in chosen and "$.tags[1]" in chosen:
        chosen.remove("$.tags[1]")
    rules = {path: pick.one(JSON_PATHS[path]) for path in chosen}
    return [{"json": rules}, {"json": rules}, *anonymise("empty")]


_LEAVES: tuple[Rule, ...] = (
    "delete", "delete", "delete", {"anonymise": None}, {"anonymise": "fixed_text", "text": WORD}, fixed(7),
    fixed(True), fixed("x"), *anonymise("random_unique", "random_email", "random_uuid", "empty"),
    *anonymise("keyed_hash"), {"scrub": "all"}, {"scrub": ["name"]},
)  # fmt: skip
JSON_PATHS: dict[str, tuple[Rule, ...]] = {
    "$.name": _LEAVES,
    "$.contacts[*].email": _LEAVES,
    '$["home address"].street': _LEAVES,
    "$.tags[*]": _LEAVES,
    "$.tags[1]": _LEAVES[3:],
    "$.note": ({"scrub": "all"}, {"scrub": ["email"]}),
    "$[*].name": _LEAVES,
    "$.contacts[*].deep[*]": _LEAVES,
}


def _documents(pick: Pick, column: Column) -> str:
    word = pick.one(_WORDS).replace("\\", "\\\\").replace('"', '\\"')
    other = pick.one(_WORDS).replace("\\", "\\\\").replace('"', '\\"')
    mine = f'"{word}{SEPARATOR}{other}"'
    contacts = f'[{{"email": "{word}", "n": 1}}, {{"n": 2}}, {{"email": null, "deep": [{mine}, "{other}"]}}]'
    everything = (
        f'{{"name": {mine}, "keep": 1.10, "tags": ["{other}", {mine}, null, 7], "contacts": {contacts},'
        f' "home address": {{"street": {mine}, "no": 12}}, "note": {mine}}}'
    )
    documents = [
        everything,
        everything,
        everything,
        f'{{"name": {{"first": "{word}"}}, "home address": ["{other}"], "tags": {{"a": 1}}}}',
        f'[{{"name": "{word}"}}, {{"name": ["{other}"]}}, 3, "{word}"]',
        '{"name": null, "tags": [], "contacts": {"email": "x"}, "note": 5}',
        f'{{"name": "{WORD}", "tags": ["x", 7, true], "contacts": [{{"deep": ["gone"]}}]}}',
        pick.one(["{}", "[]", '"text"']),
    ]
    if column.type == "text":
        documents.append(f"no JSON: {word}")
    return str(pick.one(documents))


def _elements(pick: Pick, column: Column) -> list[Any]:
    if column.type == "integer[]":
        return [pick.one([1, 2, None]) for _ in range(pick.upto(2))]
    return [pick.one([*_WORDS, None]) for _ in range(pick.upto(3))]


def _array_rules(_: Pick, column: Column) -> list[Rule]:
    return anonymise("empty") + (
        [{"scrub": "all"}, {"scrub": ["name"]}] if column.type != "integer[]" else []
    )


def _both(*types: str) -> dict[str, tuple[str, ...]]:
    return {"sqlite": types, "postgresql": types}


def _choice(*values: Any) -> Callable[[Pick, Column], Any]:
    return lambda pick, _: pick.one(values)


def _rules(*rules: Rule) -> Callable[[Pick, Column], list[Rule]]:
    return lambda _, column: [] if column.unique else list(rules)


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


KINDS: dict[str, Kind] = {
    "text": Kind(
        _both("text", "varchar"),
        _texts,
        _text_rules,
        lambda n, c: f"t{n}",
        lengths=(None, None, 23, 30, 36, 60, 100),
        checks=("", "", "", "{} <> 'forbidden'"),
    ),
    "mail": Kind(
        {"sqlite": ("text",), "postgresql": ("text", "mail_address", "varchar(60)")},
        lambda pick, _: pick.one([each for each in _WORDS if "@" in each]),
        _mail_rules,
        lambda n, c: f"m{n}@a.example",
        checks=("{} LIKE '%@%'",),
    ),
    "number": Kind(
        _both("integer", "smallint", "bigint", "numeric(12, 2)"),
        _numbers,
        _number_rules,
        lambda n, c: n,
        checks=("", "", "{} >= 0"),
    ),
    "truth": Kind(_both("boolean"), _choice(True, False), _rules(fixed(False), fixed(True))),
    "date": Kind(_both("date"), _choice(*_DAYS), _rules(*_DATES, fixed("1900-01-01"))),
    "moment": Kind(
        {"sqlite": ("timestamp", "datetime"), "postgresql": ("timestamp", "timestamptz")},
        _choice(*(f"{day} {hour}" for day in _DAYS for hour in ("00:00:00", "13:30:00"))),
        _rules(*_DATES),
    ),
    "uuid": Kind(
        {"sqlite": ("varchar(36)",), "postgresql": ("uuid",)},
        lambda pick, _: pick.one([_uuid(1), _uuid(2), "effaced0-0000-4000-a000-000000000001"]),
        lambda _, column: anonymise("random_uuid"),
        lambda n, c: _uuid(n),
    ),
    "enum": Kind(
        {"sqlite": ("varchar(8)",), "postgresql": ("mood",)},
        _choice("new", WORD, "other"),
        _rules({"anonymise": "fixed_text", "text": WORD}, fixed("other")),
        checks=("{} IN ('new', 'gone', 'other')",),
    ),
    "bytes": Kind(
        {"sqlite": ("blob",), "postgresql": ("bytea",)},
        _choice(b"", b"ann@shop.example", b"\x00\xff"),
        _rules(*anonymise("empty")),
    ),
    "json": Kind(
        {"sqlite": ("json", "text"), "postgresql": ("json", "jsonb", "text")}, _documents, _json_rules
    ),
    "array": Kind({"postgresql": ("text[]", "varchar(40)[]", "integer[]")}, _elements, _array_rules),
    "vector": Kind({"postgresql": ("tsvector",)}, _choice("'ann':1", ""), _rules(*anonymise("empty"))),
}
_CHECKED_BY_TYPE = ("mail_address", "mood")


def draw_content(pick: Pick, name: str, dialect: str, *, stays: bool, may_be_unique: bool = True) -> Column:
    """A column of any kind, and a rule for it."""
    kinds = [each for each, kind in KINDS.items() if dialect in kind.types]
    kinds += ["text", "json"] * 2
    chosen = pick.one(kinds)
    kind = KINDS[chosen]
    column = Column(name, chosen, pick.one(kind.types[dialect]), nullable=not pick.once_in(3))
    if column.type == "varchar":
        column.length = pick.one([each for each in kind.lengths if each]) if len(kind.lengths) > 1 else 60
        column.type = f"varchar({column.length})"
    elif column.type.startswith("varchar("):
        column.length = int(column.type.removeprefix("varchar(").partition(")")[0])
    if column.type not in _CHECKED_BY_TYPE:
        column.check = pick.one(kind.checks)
    column.unique = may_be_unique and kind.distinct is not None and pick.once_in(4)
    column.rule = draw_rule(pick, column, stays=stays)
    return column


def draw_rule(pick: Pick, column: Column, *, stays: bool) -> Rule:
    if not stays:
        return pick.one(["delete", "delete", "not_personal"])
    rules = [*KINDS[column.kind].rules(pick, column), *KEEPS]
    return pick.one([*rules, *(NULLS if column.nullable else ())])


def draw_value(pick: Pick, column: Column, number: int) -> Any:
    if column.nullable and pick.once_in(5):
        return None
    kind = KINDS[column.kind]
    if column.unique and kind.distinct is not None:
        return kind.distinct(number, column)
    return kind.values(pick, column)
