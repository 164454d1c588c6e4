"""A house with officers in it, and visitors who look at its console without a browser."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient
from quick_app import make_app
from sqlalchemy import func, insert, select
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from effaced.accounts.tables import Officer
from effaced.audit.tables import AuditEvent
from effaced.console.guard import SIGNED_IN_AT
from effaced.core import clock
from effaced.model import RequestKind, RequestStatus, new_id
from effaced.requests.tables import Request
from tests.browser.seed import PASSWORD, House, open_house

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HTMX = {"HX-Request": "true"}
_TOKEN = re.compile(r'name="csrf-token" content="([^"]+)"')
_REF = re.compile(r'<a class="ref" href="/console/requests/([^"]+)"')
_NEXT = re.compile(r'<a class="button" href="([^"]+)" hx-get="[^"]+" hx-target="#more"')


@pytest.fixture
def clock_at_noon() -> Iterator[clock.ManualClock]:
    """The clock that the house goes by."""
    with clock.pretend(NOON) as moving:
        yield moving


@pytest.fixture
def house(migrated_url: str, tmp_path: Path, clock_at_noon: clock.ManualClock) -> Iterator[House]:
    """An effaced with a small company, three officers and obedient vendors; once per database."""
    opened = open_house(migrated_url, tmp_path, people=60, zone="UTC")
    yield opened
    opened.runtime.db.dispose()


@pytest.fixture
def app(house: House) -> Flask:
    return make_app(house.runtime)


@dataclass
class Visitor:
    """Somebody at the console."""

    client: FlaskClient
    token: str | None = field(default="", repr=False)

    def get(self, path: str, **options: object) -> TestResponse:
        answer = self.client.get(path, **options)  # type: ignore[arg-type]
        answer.get_data()
        answer.close()
        if found := _TOKEN.search(answer.text if answer.mimetype == "text/html" else ""):
            self.token = found[1]
        return answer

    def post(self, path: str, data: dict[str, object] | None = None, **options: object) -> TestResponse:
        if self.token is None:
            self.get("/console/audit")
        return self.client.post(path, data={"csrf_token": self.token, **(data or {})}, **options)  # type: ignore[arg-type]

    def sign_in(self, name: str, password: str = PASSWORD, **more: object) -> TestResponse:
        self.get("/console/sign-in")
        answer = self.post("/console/sign-in", {"email": f"{name}@example.com", "password": password, **more})
        self.get("/console/")
        return answer

    def refs(self, path: str) -> list[str]:
        """The requests a list links to, row by row, through all of its pages by `Load more`."""
        found: list[str] = []
        following: str | None = path
        while following:
            page = self.get(following).text
            found += _REF.findall(page)
            link = _NEXT.search(page)
            following = html.unescape(link[1]) if link else None
        return found


@pytest.fixture
def visitor(app: Flask) -> Callable[[], Visitor]:
    return lambda: Visitor(app.test_client())


def seated(someone: Visitor, officer: Officer) -> Visitor:
    """With a session as the sign-in page would have given it; checking a password is slow on purpose."""
    with someone.client.session_transaction() as session:
        session.permanent = True
        session["_user_id"] = f"{officer.id}:{officer.session_epoch}"
        session[SIGNED_IN_AT] = int(clock.now().timestamp())
    someone.token = None  # a page has one, and most visitors only look
    return someone


@pytest.fixture
def ada(house: House, visitor: Callable[[], Visitor]) -> Visitor:
    """An officer who has signed in."""
    return seated(visitor(), house.ada)


@pytest.fixture
def cleo(house: House, visitor: Callable[[], Visitor]) -> Visitor:
    """An auditor who has signed in."""
    return seated(visitor(), house.cleo)


def path_of(rule: Rule) -> str:
    """An address that the rule serves, of things that do not exist."""
    names = {"<ref>": "ER-2222-2222", "<fmt>": "csv", "<name>": "crm", "<verb>": "open"}
    names |= dict.fromkeys(("<uuid:entry_id>", "<uuid:letter_id>", "<uuid:redrive_id>"), str(UUID(int=7)))
    path = rule.rule
    for name, value in names.items():
        path = path.replace(name, value)
    return path


def ref_of(house: House, request_id: UUID) -> str:
    with house.runtime.db.read() as session:
        return session.get_one(Request, request_id).ref


def status_of(house: House, request_id: UUID) -> RequestStatus:
    with house.runtime.db.read() as session:
        return session.get_one(Request, request_id).status


def count_events(house: House, type_: str) -> int:
    with house.runtime.db.read() as session:
        return session.scalar(select(func.count()).where(AuditEvent.type == type_)) or 0


def add_requests(house: House, count: int, *, due_in: timedelta, **columns: object) -> list[UUID]:
    """Many requests at once, all with the same deadline."""
    ids = [new_id() for _ in range(count)]
    values = {
        "kind": RequestKind.ERASURE,
        "status": RequestStatus.REVIEW,
        "api_key_id": house.shop.id,
        "subject_key_id": "k1",
        "datamap_hash": "0" * 64,
        "approvals_needed": 1,
        "received_at": clock.now(),
        "due_at": clock.now() + due_in,
        "execute_attempts": 0,
    }
    rows = [
        {**values, "id": each, "ref": f"ER-{each.hex[-12:].upper()}", "subject_hmac": each.hex * 2, **columns}
        for each in ids
    ]
    with house.runtime.db.begin() as session:
        session.execute(insert(Request), rows)
    return ids
