"""A house whose systems have breakers."""

from __future__ import annotations

import asyncio
from typing import Any

from saga_cast import House
from sqlalchemy import select

from effaced.breakers.model import BreakerState
from effaced.breakers.policy import BreakerPolicies
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core.db import Database
from effaced.model import OutboxStatus
from effaced.outbox.due import status_counts
from effaced.retries.tables import Attempt


class Block(House):
    """A house with breakers: five failures in a row open one, for a minute."""

    def __init__(self, database: Database, **policy: Any) -> None:
        super().__init__(database)
        self.policies = BreakerPolicies({"defaults": {"fail_max": 5, **policy}})
        self.breakers = self.another()
        self.options["breakers"] = self.breakers

    def another(self) -> BreakerRegistry:
        """As another process has it."""
        return BreakerRegistry(SqlBreakerStore(self.db), self.policies)

    def state(self, resolver: str = "crm") -> BreakerState:
        return self.another().current_state(resolver=resolver)

    def attempts(self) -> list[Attempt]:
        with self.db.read() as session:
            return list(session.scalars(select(Attempt).order_by(Attempt.id)))

    def run(self, **options: object) -> int:
        return asyncio.run(self.runner(**options).run_once())

    def counts(self) -> dict[OutboxStatus, int]:
        with self.db.read() as session:
            return {status: number for status, number in status_counts(session).items() if number}
