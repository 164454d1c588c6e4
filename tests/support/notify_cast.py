"""A house that tells people things: a database, a notify.yaml, and the runtime between them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from receivers import SECRET, Receiver
from sqlalchemy import select

from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.deadletters.tables import DeadLetter
from effaced.model import new_id
from effaced.notify.fanout import fan_out
from effaced.notify.notices import EntryAbandoned, Notice
from effaced.notify.subscriptions import subscribe_file
from effaced.notify.tables import Delivery, DeliveryAttempt, Message
from effaced.notify.write import announce
from effaced.requests.read import senders_of
from effaced.runtime import Runtime


def webhook(to: Receiver, name: str = "oncall", more: str = "") -> str:
    """A block of notify.yaml for this receiver."""
    return f"{{{name}: {{kind: webhook, url: '{to.url}', secret: '{SECRET}', timeout: 60{more}}}}}"


def abandoned(**facts: object) -> EntryAbandoned:
    """A notice as it is written when an entry is given up."""
    usual = {"dead_letter_id": new_id(), "error": "Rejected", "resolver": "crm", "attempts": 8}
    return EntryAbandoned(**(usual | facts))  # type: ignore[arg-type]


class Town:
    """`configure` writes the file; `deliver` is one run of the job."""

    def __init__(self, database: Database, folder: Path, **settings: object) -> None:
        self.db = database
        self.path = folder / "notify.yaml"
        self.settings = settings
        self.configure()

    def configure(self, targets: str = "{}") -> None:
        self.path.write_text(f"version: 1\ntargets: {targets}\n")

    @property
    def runtime(self) -> Runtime:
        settings = Settings(keys=new_key(), notify=self.path, **self.settings)  # type: ignore[arg-type]
        return Runtime(settings, database=self.db)

    def tell(self, *notices: Notice) -> None:
        with self.db.begin() as session:
            announce(session, notices or [abandoned()])

    def deliver(self) -> int:
        return asyncio.run(self.runtime.deliverer().run())

    def fan_out(self) -> None:
        subscribe_file(self.db, self.runtime.targets)
        with self.db.begin() as session:
            fan_out(session, senders_of)

    def is_due(self) -> bool:
        return self.runtime.deliverer().is_due()

    def messages(self) -> Sequence[Message]:
        with self.db.read() as session:
            return session.scalars(select(Message).order_by(Message.id)).all()

    def deliveries(self) -> Sequence[Delivery]:
        with self.db.read() as session:
            return session.scalars(select(Delivery).order_by(Delivery.id)).all()

    def delivery(self) -> Delivery:
        (only,) = self.deliveries()
        return only

    def attempts(self, delivery_id: UUID) -> Sequence[DeliveryAttempt]:
        with self.db.read() as session:
            of_it = DeliveryAttempt.delivery_id == delivery_id
            return session.scalars(select(DeliveryAttempt).where(of_it).order_by(DeliveryAttempt.id)).all()

    def letters(self) -> Sequence[DeadLetter]:
        with self.db.read() as session:
            return session.scalars(select(DeadLetter)).all()
