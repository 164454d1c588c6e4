"""The demo company: who its customers are and what its database holds about them. Nobody exists."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypedDict

from sqlalchemy import Engine, func, insert, select
from sqlalchemy.orm import Session

from effaced.core.errors import Conflict
from effaced.demo.people import Invented, invent
from effaced.demo.tables import customers, metadata

Row = dict[str, Any]


class Person(TypedDict):
    """A customer: the key of the subject table, and how the other systems know them."""

    id: int
    name: str
    email: str
    refs: dict[str, str]


_PRODUCTS = (
    ("Fountain pen, fine nib", 4_900),
    ("Notebook, dotted, A5", 1_450),
    ("Desk lamp, brass", 12_900),
    ("Letter opener, oak", 2_300),
    ("Ink, midnight blue, 50 ml", 1_150),
    ("Leather folder, A4", 8_900),
    ("Wax seal set", 3_400),
    ("Paper knife, steel", 1_900),
)
_TICKETS = (
    ("Where is my parcel?", "I ordered two weeks ago and nothing has come yet."),
    ("Wrong colour", "I got green ink, but I had ordered midnight blue."),
    ("Invoice with another address", "Please send the invoice to my office instead."),
    ("The nib scratches", "It was fine in the shop. Can I exchange it?"),
)
_NOTES = ("Leave it with the neighbours.", "The bell does not work, please knock.", "Second courtyard.")
_EPOCH = date(2023, 1, 9)


def create_company(engine: Engine) -> None:
    """Create the company's tables where they do not exist yet."""
    metadata.create_all(engine)


def fill_company(session: Session, people: int = 300, seed: int = 7) -> list[Person]:
    """Fill the empty tables. The same numbers always give the same people."""
    if session.scalar(select(func.count()).select_from(customers)):
        raise Conflict("The demo company has customers already; it is filled only once.")
    invented = invent(people, seed)
    rows: dict[str, list[Row]] = {table.name: [] for table in metadata.sorted_tables}
    rows["products"] = [
        {"id": number, "name": name, "price_cents": cents}
        for number, (name, cents) in enumerate(_PRODUCTS, start=1)
    ]
    for each in invented:
        _add_person(rows, each)
        for count in range(each.orders):
            _add_order(rows, each, each.id * 10 + count)
    for table in metadata.sorted_tables:
        if rows[table.name]:
            session.execute(insert(table), rows[table.name])
    return [_person(each) for each in invented]


def demo_people(people: int = 300, seed: int = 7) -> list[Person]:
    """The people `fill_company` fills in with the same numbers."""
    return [_person(each) for each in invent(people, seed)]


def vendor_records(people: Iterable[Person]) -> dict[str, dict[str, Row]]:
    """What each fake vendor holds about them: by vendor, by the vendor's key."""
    records: dict[str, dict[str, Row]] = {"payment": {}, "crm": {}, "mailing": {}, "files": {}}
    for each in people:
        who, refs = {"name": each["name"], "email": each["email"]}, each["refs"]
        records["payment"][refs["payment_customer"]] = who | {"card": "**** 4242"}
        if "crm_contact" in refs:
            records["crm"][refs["crm_contact"]] = who | {"stage": "customer"}
        if _subscribes(each["id"]):
            records["mailing"][refs["mailing_subscriber"]] = who | {"list": "letters"}
        for name in ("order-form.pdf", "signature.png"):
            records["files"][refs["file_prefix"] + name] = {"bytes": 10_000 + each["id"]}
    return records


def _person(each: Invented) -> Person:
    refs = {
        "payment_customer": each.payment_ref,
        "mailing_subscriber": each.email,
        "file_prefix": f"customers/{each.id}/",
    }
    if each.crm_ref:
        refs["crm_contact"] = each.crm_ref
    if box := _archive_box(each.id):
        refs["paper_file"] = box
    return Person(id=each.id, name=each.name, email=each.email, refs=refs)


def _archive_box(person: int) -> str | None:
    """Some have signed something on paper, which lies in the cellar."""
    return f"K-{person}" if person % 30 == 21 else None


def _subscribes(person: int) -> bool:
    return person % 4 != 0


def _add_person(rows: dict[str, list[Row]], each: Invented) -> None:
    place = {"street": each.street, "postcode": each.postcode, "city": each.city, "country": each.country}
    since = _EPOCH + timedelta(days=each.days)
    rows["customers"].append(
        {
            "id": each.id,
            "number": f"C-{each.id}",
            "name": each.name,
            "email": each.email,
            "phone": each.phone,
            "birth_date": each.birth_date,
            "language": each.language,
            "payment_ref": each.payment_ref,
            "crm_ref": each.crm_ref,
            "archive_box": _archive_box(each.id),
            "customer_since": since,
        }
    )
    rows["addresses"].append({"id": each.id * 10, "customer_id": each.id, "kind": "billing"} | place)
    if each.id % 3 == 0:
        rows["addresses"].append({"id": each.id * 10 + 1, "customer_id": each.id, "kind": "delivery"} | place)
    if _subscribes(each.id):
        rows["newsletter_subscriptions"].append(
            {"email": each.email, "topic": "letters", "subscribed_on": since}
        )
    if each.id % 2 == 0:
        _add_ticket(rows, each, since)


def _add_ticket(rows: dict[str, list[Row]], each: Invented, since: date) -> None:
    subject, question = _TICKETS[each.id % len(_TICKETS)]
    opened = datetime(since.year, since.month, since.day, 9, each.id % 60, tzinfo=UTC) + timedelta(days=20)
    rows["support_tickets"].append(
        {"id": each.id, "customer_id": each.id, "subject": subject, "opened_at": opened, "status": "closed"}
    )
    said = [
        ("customer", f"{question} {each.name}, {each.phone or each.email}"),
        ("agent", "We look into it."),
    ]
    rows["ticket_messages"] += [
        {"id": each.id * 10 + line, "ticket_id": each.id, "author": author, "body": body}
        for line, (author, body) in enumerate(said)
    ]


def _add_order(rows: dict[str, list[Row]], each: Invented, number: int) -> None:
    placed = _EPOCH + timedelta(days=each.days + number % 10 * 45)
    items: list[Row] = []
    for line in range(1, 2 + number % 3):
        product = (number * 7 + line) % len(_PRODUCTS)
        engraving = each.name.split()[0] if product == 0 else None
        items.append(
            {
                "order_id": number,
                "line": line,
                "product_id": product + 1,
                "quantity": 1 + line % 2,
                "price_cents": _PRODUCTS[product][1],
                "engraving": engraving,
            }
        )
    total = sum(item["quantity"] * item["price_cents"] for item in items)
    note = _NOTES[number % len(_NOTES)] if number % 4 == 0 else None
    rows["order_items"] += items
    rows["orders"].append(
        {
            "id": number,
            "customer_id": each.id,
            "placed_on": placed,
            "status": "delivered",
            "total_cents": total,
            "delivery_note": note,
        }
    )
    rows["invoices"].append(
        {
            "id": number,
            "customer_id": each.id,
            "number": f"INV-{placed.year}-{number}",
            "order_number": number,
            "issued_on": placed + timedelta(days=1),
            "billing_name": each.name,
            "billing_address": f"{each.street}, {each.postcode} {each.city}, {each.country}",
            "total_cents": total,
        }
    )
