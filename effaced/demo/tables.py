"""The demo company's own tables. They are in a MetaData of their own: effaced's know nothing of them."""

from __future__ import annotations

from sqlalchemy import Column, Date, DateTime, ForeignKey, Integer, MetaData, String, Table, Text

metadata = MetaData()


def _key(name: str = "id") -> Column[int]:
    # The company's own software gives out the numbers, so that both databases hold the same ones.
    return Column(name, Integer, primary_key=True, autoincrement=False)


def _owner() -> Column[int]:
    return Column("customer_id", Integer, ForeignKey("customers.id"), nullable=False, index=True)


customers = Table(
    "customers",
    metadata,
    _key(),
    Column("number", String(32), nullable=False, unique=True),
    Column("name", String(120), nullable=False),
    Column("email", String(255), nullable=False, unique=True),
    Column("phone", String(32)),
    Column("birth_date", Date),
    Column("language", String(2), nullable=False),
    Column("payment_ref", String(64), unique=True),
    Column("crm_ref", String(64), unique=True),
    Column("archive_box", String(16)),
    Column("customer_since", Date, nullable=False),
)

addresses = Table(
    "addresses",
    metadata,
    _key(),
    _owner(),
    Column("kind", String(16), nullable=False),
    Column("street", String(120), nullable=False),
    Column("postcode", String(12), nullable=False),
    Column("city", String(60), nullable=False),
    Column("country", String(2), nullable=False),
)

products = Table(
    "products",
    metadata,
    _key(),
    Column("name", String(80), nullable=False),
    Column("price_cents", Integer, nullable=False),
)

orders = Table(
    "orders",
    metadata,
    _key(),
    _owner(),
    Column("placed_on", Date, nullable=False),
    Column("status", String(16), nullable=False),
    Column("total_cents", Integer, nullable=False),
    Column("delivery_note", Text),
)

order_items = Table(
    "order_items",
    metadata,
    Column("order_id", Integer, ForeignKey("orders.id"), primary_key=True, autoincrement=False),
    _key("line"),
    Column("product_id", Integer, ForeignKey("products.id"), nullable=False),
    Column("quantity", Integer, nullable=False),
    Column("price_cents", Integer, nullable=False),
    Column("engraving", String(60)),
)

# Kept for ten years, by law. It names the order by its number only: orders go, invoices stay.
invoices = Table(
    "invoices",
    metadata,
    _key(),
    _owner(),
    Column("number", String(20), nullable=False, unique=True),
    Column("order_number", Integer, nullable=False),
    Column("issued_on", Date, nullable=False),
    Column("billing_name", String(120), nullable=False),
    Column("billing_address", String(255), nullable=False),
    Column("total_cents", Integer, nullable=False),
)

support_tickets = Table(
    "support_tickets",
    metadata,
    _key(),
    _owner(),
    Column("subject", String(120), nullable=False),
    Column("opened_at", DateTime(timezone=True), nullable=False),
    Column("status", String(16), nullable=False),
)

ticket_messages = Table(
    "ticket_messages",
    metadata,
    _key(),
    Column("ticket_id", Integer, ForeignKey("support_tickets.id"), nullable=False, index=True),
    Column("author", String(16), nullable=False),
    Column("body", Text, nullable=False),
)

# Older than the customer table, and joined to it by nothing but the address.
newsletter_subscriptions = Table(
    "newsletter_subscriptions",
    metadata,
    Column("email", String(255), primary_key=True),
    Column("topic", String(40), nullable=False),
    Column("subscribed_on", Date, nullable=False),
)
