"""Invented customers: plausible in a demo, and nobody's."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random


@dataclass(frozen=True, slots=True)
class Invented:
    """Everything the demo makes up about one customer."""

    id: int
    name: str
    email: str
    phone: str | None
    birth_date: date | None
    language: str
    street: str
    postcode: str
    city: str
    country: str
    payment_ref: str
    crm_ref: str | None
    days: int
    orders: int


@dataclass(frozen=True, slots=True)
class _Land:
    country: str
    language: str
    calling_code: str
    first: tuple[str, ...]
    last: tuple[str, ...]
    streets: tuple[str, ...]
    cities: tuple[str, ...]
    postcode: str


_LANDS = (
    _Land(
        "DE", "de", "+49",
        ("Anneliese", "Björn", "Friederike", "Jörg", "Katharina", "Matthias", "Ronja", "Ulrich"),
        ("Ackermann", "Brückner", "Ehlers", "Grünwald", "Köhnke", "Petersen", "Strauß", "Vogelsang"),
        ("Lindenweg", "Am Mühlbach", "Gartenstraße", "Kirchgasse"),
        ("Lübeck", "Erfurt", "Göttingen", "Passau"),
        "#####",
    ),
    _Land(
        "FR", "fr", "+33",
        ("Aurélie", "Benoît", "Cécile", "Étienne", "Margaux", "Rémi", "Solène", "Thibault"),
        ("Beauvais", "Chauvin", "Delorme", "Fontaine", "Lefèvre", "Mercier", "Pélissier", "Vasseur"),
        ("rue des Tilleuls", "rue du Moulin", "allée des Cerisiers", "quai du Port"),
        ("Angers", "Dijon", "Quimper", "Valence"),
        "#####",
    ),
    _Land(
        "IT", "it", "+39",
        ("Alessia", "Bruno", "Chiara", "Davide", "Elena", "Niccolò", "Serena", "Tommaso"),
        ("Barbieri", "Colombo", "D'Angelo", "Ferraro", "Lombardi", "Marchetti", "Pellegrini", "Rinaldi"),
        ("via dei Glicini", "via del Forno", "viale delle Rose", "piazza Vecchia"),
        ("Cremona", "Ferrara", "Lecce", "Trento"),
        "#####",
    ),
    _Land(
        "NL", "nl", "+31",
        ("Annemiek", "Bram", "Femke", "Jelle", "Lotte", "Maarten", "Sanne", "Wouter"),
        ("de Boer", "Hoekstra", "Kuipers", "Mulder", "van Dijk", "van den Berg", "Visser", "Zijlstra"),
        ("Kastanjelaan", "Molenstraat", "Oude Gracht", "Zonnebloemweg"),
        ("Deventer", "Leeuwarden", "Middelburg", "Zutphen"),
        "#### AB",
    ),
    _Land(
        "PL", "pl", "+48",
        ("Agnieszka", "Bartosz", "Grażyna", "Jędrzej", "Łucja", "Michał", "Wioletta", "Zbigniew"),
        ("Borkowski", "Dąbek", "Gołąb", "Jaworska", "Kozioł", "Nowicka", "Sikora", "Wróbel"),
        ("ulica Lipowa", "ulica Młyńska", "ulica Ogrodowa", "aleja Róż"),
        ("Lublin", "Opole", "Toruń", "Zamość"),
        "##-###",
    ),
    _Land(
        "SE", "sv", "+46",
        ("Agneta", "Björn-Åke", "Ebba", "Gösta", "Linnéa", "Måns", "Saga", "Tord"),
        ("Åkerlund", "Bergström", "Dahlgren", "Ekblad", "Hedlund", "Lindqvist", "Sjöberg", "Wallin"),
        ("Björkvägen", "Kvarngatan", "Skolgatan", "Ängsvägen"),
        ("Falun", "Kalmar", "Luleå", "Visby"),
        "### ##",
    ),
)  # fmt: skip
_PROVIDERS = ("post.example", "mail.example", "letters.example", "home.example")
_PLAIN = str.maketrans({"ß": "ss", "ł": "l", "Ł": "L", "ø": "o", "'": "", " ": ""})


def invent(people: int, seed: int) -> list[Invented]:
    """That many people, always the same for a seed; more people leave the earlier ones as they were."""
    taken: dict[str, int] = {}
    return [_one(1001 + index, Random(f"{seed}:{index}"), taken) for index in range(people)]  # noqa: S311


def _one(number: int, chance: Random, taken: dict[str, int]) -> Invented:
    land = chance.choice(_LANDS)
    first, last = chance.choice(land.first), chance.choice(land.last)
    born = date(1945, 1, 1) + timedelta(days=chance.randrange(22_000))
    phone = f"{land.calling_code} 555 {chance.randrange(10**6):06d}"
    return Invented(
        id=number,
        name=f"{first} {last}",
        email=_email(first, last, chance.choice(_PROVIDERS), taken),
        phone=phone if chance.random() < 0.8 else None,
        birth_date=born if chance.random() < 0.7 else None,
        language=land.language,
        street=f"{chance.choice(land.streets)} {chance.randrange(1, 120)}",
        postcode="".join(str(chance.randrange(1, 10)) if c == "#" else c for c in land.postcode),
        city=chance.choice(land.cities),
        country=land.country,
        payment_ref=f"cus_{chance.getrandbits(64):016x}",
        crm_ref=f"con_{chance.getrandbits(48):012x}" if chance.random() < 0.85 else None,
        days=chance.randrange(900),
        orders=chance.choice((0, 1, 1, 2, 3, 5)),
    )


def _email(first: str, last: str, provider: str, taken: dict[str, int]) -> str:
    """An address of its own: the second Anna Bell at a provider is anna.bell2."""
    decomposed = unicodedata.normalize("NFD", f"{first}.{last}".translate(_PLAIN))
    plain = "".join(each for each in decomposed if not unicodedata.combining(each)).lower()
    count = taken[f"{plain}@{provider}"] = taken.get(f"{plain}@{provider}", 0) + 1
    return f"{plain}{count if count > 1 else ''}@{provider}"
