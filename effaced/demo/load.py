"""Fills the demo: the company's people, officers, and requests in every state there is.

The past is made the way the present is: requests are received, approved and driven through the real
code against the fake vendors, with the clock turned back and a fault switched on where one is wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.officers import create_officer
from effaced.accounts.tables import ApiKey, Officer
from effaced.core import clock
from effaced.demo.company import create_company, fill_company
from effaced.demo.vendors.remote import switch
from effaced.model import Correction, RequestKind, Role
from effaced.requests.approve import approve_and_execute
from effaced.requests.intake import IntakeRequest, receive
from effaced.resolvers.check import check_all
from effaced.resolvers.read_backs import record_check
from effaced.runtime import Runtime
from effaced.triage import pause as steer

PEOPLE = 300
SHOP = "Web shop"
OFFICER = "officer@demo.example"
PASSWORD = "erase-me-please"  # noqa: S105
REASON = "Identity confirmed by the shop's account; no invoice is disputed."
_PAUSED = "The cellar is being painted; nobody gets at the boxes until it is dry."
_TEAM = (
    (OFFICER, "Mara Lindqvist", Role.OFFICER),
    ("admin@demo.example", "Jonas Weidmann", Role.ADMIN),
    ("auditor@demo.example", "Inès Carvalho", Role.AUDITOR),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """One person's request, some days ago. Everything after `days` says what became of it."""

    person: int
    days: float
    approved_after: float | None = None
    vendor: str = ""
    fault: str = ""
    options: tuple[tuple[str, object], ...] = ()
    tries: int = 1
    corrections: tuple[tuple[str, str], ...] = ()
    looked_at_after: float | None = None


# Accounting has frozen this customer's record by a rule in the database, and told nobody.
FROZEN = 1096
_FREEZE = f"""
    CREATE TRIGGER frozen_by_accounting BEFORE UPDATE ON customers WHEN OLD.id = {FROZEN}
    BEGIN SELECT RAISE(ABORT, 'record is frozen'); END
"""
# People whose number divides by four take no newsletter: nothing of theirs waits for the mailing list.
SCENES = (
    *(Scene(1000 + 4 * number, 41 - 2.7 * number, approved_after=1.2) for number in range(1, 14)),
    Scene(1060, 33.5),  # overdue, nobody has looked at it
    Scene(1064, 27.2),  # due this week
    Scene(1068, 3.1),
    Scene(1072, 0.4),
    Scene(1061, 12, 0.8, "mailing", "expires_only", (("seconds", 19 * 86_400),)),
    Scene(1062, 9, 1.1, "mailing", "expires_only", (("seconds", 44 * 86_400),)),
    Scene(1063, 2, 0.5),  # waits two minutes for the mailing list and then completes before your eyes
    Scene(1076, 6, 1.0, "payment", "rejects"),
    Scene(1080, 5, 0.7, "files", "rejects", (("status", 422),)),
    Scene(1084, 4, 0.9, "payment", "rejects"),
    Scene(1088, 8, 0.6, "crm", "lies"),
    Scene(FROZEN, 1.5, 0.3),  # approved, but the company's own database refuses
    Scene(1092, 0.6, 0.588, "crm", "down", tries=6),  # still trying, with growing pauses
    Scene(1098, 1.2, corrections=(("phone", "+49 555 010 203"), ("birthday", "1974-05-19"))),
    Scene(1097, 2.4, 0.4, corrections=(("name", "Solveig Aldersund"), ("phone", "+46 555 010 204"))),
    Scene(1099, 3.0, 0.5, corrections=(("email", "new.address@letters.example"),)),  # mailing can't
    Scene(1101, 5.2, 0.6, tries=2),  # a folder in the cellar waits for a person
    Scene(1131, 17, 1.0, tries=2, looked_at_after=14.5),  # this one waited too long
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a visitor needs to get in."""

    people: int
    requests: int
    api_token: str


class Demo:
    """The demo company on one runtime, with its vendors at `vendors`."""

    def __init__(self, runtime: Runtime, vendors: str) -> None:
        self._runtime = runtime
        self._vendors = vendors

    def load(self, progress: Callable[[str], None]) -> Loaded:
        """Fill an empty database."""
        progress(f"inventing {PEOPLE} people")
        create_company(self._runtime.db.engine)
        with self._runtime.db.begin() as session:
            fill_company(session, PEOPLE)
            session.execute(text(_FREEZE))
            team = [
                create_officer(session, email=email, name=name, role=role, password=PASSWORD, actor="cli")
                for email, name, role in _TEAM
            ]
            key, token = create_api_key(session, NewApiKey(name=SHOP, approvals_needed=1), actor="cli")
        progress(f"telling {len(SCENES)} stories")
        now = clock.now()
        for moment, step in sorted(self._steps(now, team[0], key), key=lambda each: each[0]):
            with clock.pretend(min(moment, now)):
                step()
        with clock.pretend(now - timedelta(hours=3)):
            self._pause(team[1])
        progress("checking the read-back of each vendor")
        self._check_read_backs()
        return Loaded(PEOPLE, len(SCENES), token)

    def _steps(
        self, now: datetime, officer: Officer, key: ApiKey
    ) -> Iterator[tuple[datetime, Callable[[], None]]]:
        for scene in SCENES:
            ids: list[UUID] = []
            received = now - timedelta(days=scene.days)
            yield received, lambda scene=scene, ids=ids: ids.append(self._receive(scene, key))  # type: ignore[misc]
            if scene.approved_after is None:
                continue
            approved = received + timedelta(days=scene.approved_after)
            yield (
                approved,
                lambda scene=scene, ids=ids: self._approve(scene, ids[0], officer),  # type: ignore[misc]
            )
            if scene.looked_at_after is not None:
                yield approved + timedelta(days=scene.looked_at_after), self._run_due_calls

    def _receive(self, scene: Scene, key: ApiKey) -> UUID:
        with self._runtime.db.begin() as session:
            asked = IntakeRequest(
                RequestKind.RECTIFICATION if scene.corrections else RequestKind.ERASURE,
                str(scene.person),
                api_key=key,
                corrections=[Correction(name, value) for name, value in scene.corrections],
            )
            runtime = self._runtime
            return receive(
                session, runtime.keyring, runtime.plan, asked, zone=runtime.settings.zone
            ).request.id

    def _run_due_calls(self) -> None:
        """Make the calls that are due by now: parked erasures are asked again, read-backs made."""
        asyncio.run(self._runtime.runner().run_once())

    def _check_read_backs(self) -> None:
        """As `effaced resolver check` does, with the canaries of resolvers.yaml."""
        registry = self._runtime.registry
        checked = asyncio.run(check_all(registry))
        with self._runtime.db.begin() as session:
            for each in checked:
                record_check(session, self._runtime.keyring, registry.get(each.name), each, actor="cli")

    def _pause(self, officer: Officer) -> None:
        """Pause the archive: the one system that a visitor does not miss."""
        with self._runtime.db.begin() as session:
            actor = f"officer:{officer.id}"
            steer.pause(session, self._runtime.keyring, "archive", actor=actor, reason=_PAUSED, hours=72)

    def _approve(self, scene: Scene, request_id: UUID, officer: Officer) -> None:
        with self._fault(scene):
            approve_and_execute(self._runtime.executor, request_id, by=officer.id, reason=REASON)
            at = clock.now()
            for number in range(scene.tries):
                with clock.pretend(at):
                    asyncio.run(self._runtime.runner().run_once())
                at += self._runtime.backoff.delay(number + 1)

    @contextmanager
    def _fault(self, scene: Scene) -> Iterator[None]:
        if not scene.vendor:
            yield
            return
        switch(self._vendors, scene.vendor, scene.fault, **dict(scene.options))
        yield
        switch(self._vendors, scene.vendor, "none")
