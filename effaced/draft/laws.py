"""What laws want kept, roughly: enough for a suggestion, never for a decision."""

from __future__ import annotations

from effaced.datamap.schema.tables import LiveTable
from effaced.datamap.vocabulary.names import split_name

# What no law wants of a kept record.
BESIDE_THE_RECORD = {
    "financial": {
        "email", "phone", "ip", "device", "secret", "photo", "place", "web", "login", "birth", "gender",
    },
    "medical": {"ip", "device", "secret", "web", "login"},
    "employment": {"ip", "device", "secret", "web", "login", "photo"},
}  # fmt: skip
# Free text that says what was bought, and not what somebody had to say.
ON_THE_RECORD = {"description", "beschreibung", "text", "content", "subject", "betreff", "details", "title"}
_LAW = {
    "financial": ("tax and commercial law", 10),
    "medical": ("law on medical records", 10),
    "employment": ("tax and labour law", 6),
}
# What records need of the person's own row.
WHO = {
    "financial": ("first_name", "last_name", "full_name", "street", "postcode", "city"),
    "medical": (
        "first_name", "last_name", "full_name", "birth", "gender", "number_of_person", "health",
    ),
    "employment": ("first_name", "last_name", "full_name", "birth", "number_of_person"),
}  # fmt: skip
_BEST_DATES = (
    "issued",
    "invoice",
    "order",
    "ordered",
    "paid",
    "booked",
    "signed",
    "created",
    "date",
    "datum",
)


def retain(table: LiveTable, law: str, *, dated: bool = True) -> str:
    """The rule that keeps a record, for a person to confirm; its end goes by the best date of the row."""
    basis, years = _LAW[law]
    dates = [each for each in table.columns.values() if dated and each.family in ("date", "date and time")]
    dates.sort(key=lambda each: (each.nullable, _rank(each.name)))
    until = f', until: "{dates[0].name} + {years} years"' if dates and dates[0].name.isidentifier() else ""
    return f'{{retain: {{basis: "{basis}"{until}}}}}'


def _rank(name: str) -> int:
    found = [place for place, word in enumerate(_BEST_DATES) if word in split_name(name)]
    return min(found, default=len(_BEST_DATES))
