"""FailedOperationRepository in one process's memory: for tests, and for applications that keep nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import StaticPool, create_engine
from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.append import SYSTEM
from effaced.core.arguments import checked
from effaced.core.crypto import Keyring
from effaced.core.db import Base, Database
from effaced.deadletters.linked_work import REQUESTS
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.deadletters.rules import SLA, Sla


@checked
class InMemoryFailedOperationRepository(SQLFailedOperationRepository):
    """The SQL repository over a private SQLite database in memory, so the two can't differ.

    `database` is that database. Its outbox says whether the work behind a dead letter is done; it is empty
    unless the application puts something into it.
    """

    def __init__(self, keyring: Keyring, *, actor: str = SYSTEM, sla_thresholds: Sla = SLA) -> None:
        self.database = InMemoryDatabase()
        super().__init__(self.database, keyring, actor=actor, sla_thresholds=sla_thresholds)


class InMemoryDatabase(Database):
    """One SQLite connection in memory, used by one thread at a time."""

    def __init__(self) -> None:
        self.engine = create_engine(
            "sqlite://",
            poolclass=StaticPool,
            connect_args={"check_same_thread": False},
            hide_parameters=True,
        )
        self.sessions = sessionmaker(self.engine, expire_on_commit=False)
        self.readers = self.sessions
        self._lock = threading.Lock()
        for metadata in (Base.metadata, REQUESTS.metadata):  # the latter where `requests` is not imported
            metadata.create_all(self.engine)

    @contextmanager
    def begin(self) -> Iterator[Session]:
        with self._lock, self.sessions.begin() as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._lock, self.sessions() as session:
            yield session
