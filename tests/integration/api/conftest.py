"""A small company, an effaced in front of it, and a caller with an API key."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from api_desk import Desk
from flask import Flask
from integrators import MESSAGES, Integrator, Join
from officers import add_officer
from quick_app import make_app
from quick_database import open_quickly
from receivers import Receiver, receiver
from sqlalchemy import (
    Boolean,
    Column,
    Date,
    Enum,
    Integer,
    MetaData,
    String,
    Table,
    event,
    insert,
    select,
    text,
)
from structlog.testing import capture_logs
from werkzeug.test import TestResponse

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.scopes import DEFAULT, NEED_AN_OFFICER, Scope
from effaced.accounts.tables import ApiKey, Officer
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Base
from effaced.model import Role, new_id
from effaced.runtime import Runtime

DATAMAP = """
version: 1
subject: {table: customers, key: id}
identifiers: {email: email}
refs: {crm_contact: {column: crm_ref}}
tables:
  customers:
    columns:
      {id: delete, email: delete, crm_ref: delete, name: delete, phone: delete, born: delete, points: delete,
       member: delete, salutation: delete}
rectify:
  email: customers.email
  name: customers.name
  phone: customers.phone
  birthday: customers.born
  points: customers.points
  membership: customers.member
  salutation: customers.salutation
"""
RESOLVERS = """
version: 1
resolvers:
  crm: {kind: noop, ref: crm_contact}
"""
CORRECTING = """
version: 1
resolvers:
  archive: {kind: manual, ref: crm_contact}
"""
company = MetaData()
customers = Table(
    "customers",
    company,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("email", String(255), nullable=False, unique=True),
    Column("crm_ref", String(64)),
    Column("name", String(20), nullable=False, server_default="Nobody"),
    Column("phone", String(32)),
    Column("born", Date),
    Column("points", Integer),
    Column("member", Boolean),
    Column("salutation", Enum("ms", "mr", "mx", name="salutation")),
)


@dataclass(frozen=True)
class Api:
    """A caller of the API, and a way to look behind it."""

    app: Flask
    runtime: Runtime
    key: ApiKey
    token: str

    def post(
        self, body: Any, *, token: str | None = None, idempotency_key: str | None = None
    ) -> TestResponse:
        headers = self.headers(token)
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        return self.app.test_client().post("/api/v1/requests", json=body, headers=headers)

    def send(self, data: bytes, content_type: str = "application/json") -> TestResponse:
        return self.app.test_client().post(
            "/api/v1/requests", data=data, content_type=content_type, headers=self.headers()
        )

    def get(self, path: str, *, token: str | None = None) -> TestResponse:
        return self.app.test_client().get(path, headers=self.headers(token))

    def whole(self, path: str, *, token: str | None = None) -> Any:
        """A request with everything that its answer can have besides."""
        return self.get(f"{path}?expand=entries&expand=events", token=token).get_json()

    def trail(self, request: Any, *, token: str | None = None) -> list[dict[str, Any]]:
        """The events of a request as its caller sees them, oldest first."""
        answer = self.get(f"{request['links']['self']}/events", token=token)
        assert answer.status_code == 200, answer.text
        return list(reversed(answer.get_json()["data"]))

    def call(self, method: str, path: str, *, token: str | None = None, **options: Any) -> TestResponse:
        """Any call; `headers` come on top of the key's."""
        headers = {**self.headers(token), **options.pop("headers", {})}
        return self.app.test_client().open(path, method=method, headers=headers, **options)

    def headers(self, token: str | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {token or self.token}"}

    def new_key(
        self,
        name: str,
        approvals_needed: int = 1,
        *,
        scopes: Iterable[str] = DEFAULT,
        sandbox: bool = False,
        officer_id: UUID | None = None,
        metadata_keys: Sequence[str] = (),
    ) -> str:
        """The token of another key. One that decides has an officer; a sandbox key may have any scopes."""
        scopes = [str(each) for each in scopes]
        with self.runtime.db.begin() as session:
            if NEED_AN_OFFICER.intersection(scopes) and officer_id is None:
                officer_id = add_officer(session, f"officer of {name}").id
            new = NewApiKey(
                name=name,
                approvals_needed=approvals_needed,
                scopes=scopes or [Scope.REQUESTS_READ],
                officer_id=officer_id,
                metadata_keys=metadata_keys,
            )
            key, token = create_api_key(session, new, actor="cli")
            key.sandbox = sandbox
            if not scopes:  # nobody makes such a key, but nothing may rest on that
                key.scopes = []
        return token

    def officer(self, name: str, role: Role = Role.OFFICER) -> Officer:
        with self.runtime.db.begin() as session:
            return add_officer(session, name, role)

    def officers_key(self, officer: Officer, *scopes: str, **more: Any) -> str:
        """A key that decides in the officer's name."""
        scopes = scopes or ("decide:approve", "decide:attest")
        return self.new_key(f"{officer.name} {new_id()}", scopes=scopes, officer_id=officer.id, **more)

    def post_to(
        self, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> TestResponse:
        """POST to any path of the API."""
        sent = {**self.headers(token), **{name.replace("_", "-"): text for name, text in headers.items()}}
        return self.app.test_client().post(f"/api/v1{path}", json=body, headers=sent)

    @staticmethod
    def erasure(subject_id: str = "1", **more: Any) -> dict[str, Any]:
        return {"kind": "erasure", "subject": {"id": subject_id}, **more}

    @staticmethod
    def rectification(subject_id: str = "1", **corrections: Any) -> dict[str, Any]:
        return {"kind": "rectification", "subject": {"id": subject_id}, "corrections": corrections}

    @staticmethod
    def problem(answer: TestResponse) -> tuple[int, str, dict[str, str]]:
        """Status, type and wrong fields of an answer that must be a problem."""
        assert answer.content_type == "application/problem+json"
        body = answer.get_json()
        slug = body["type"].removeprefix("urn:effaced:problem:")
        return answer.status_code, slug, {each["field"]: each["message"] for each in body["errors"]}

    def make_read_only(self) -> None:
        """From now on the database refuses to be written."""
        engine = self.runtime.db.engine
        if engine.dialect.name == "postgresql":
            with engine.begin() as connection:
                command = f'ALTER DATABASE "{engine.url.database}" SET default_transaction_read_only = on'
                connection.exec_driver_sql(command)
        else:
            event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA query_only = ON"))
        engine.dispose()

    def customer(self, subject_id: int) -> Any:
        with self.runtime.db.read() as session:
            return session.execute(select(customers).where(customers.c.id == subject_id)).one()

    def everything(self) -> str:
        """Every cell of effaced's own tables, to look for what must not be there."""
        with self.runtime.db.read() as session:
            return repr([session.execute(select(table)).all() for table in Base.metadata.sorted_tables])

    def rows(self) -> dict[str, int]:
        """How many rows each table has: what a refusal must leave alone."""
        names = [table.name for table in (*Base.metadata.sorted_tables, customers)]
        counted = ", ".join(f"(SELECT count(*) FROM {name})" for name in names)
        with self.runtime.db.read() as session:
            return dict(zip(names, session.execute(text(f"SELECT {counted}")).one(), strict=True))


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """What is logged meanwhile."""
    with capture_logs() as entries:
        yield entries


def _forget_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("EFFACED_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget_settings(monkeypatch)


def _runtime(folder: Path, url: str, *, resolvers: str = RESOLVERS, **settings: Any) -> Runtime:
    (folder / "datamap.yaml").write_text(DATAMAP)
    (folder / "resolvers.yaml").write_text(resolvers)
    files = {"datamap": folder / "datamap.yaml", "resolvers": folder / "resolvers.yaml"}
    chosen = Settings(**{"database_url": url, "keys": new_key(), **files, **settings})
    return Runtime(chosen, database=open_quickly(url))


def _api(
    make_runtime: Callable[..., Runtime], url: str, *, approvals_needed: int = 1, **settings: Any
) -> Api:
    """An API on a database with six customers, 1 to 6."""
    database = open_quickly(url)
    company.create_all(database.engine)
    with database.begin() as session:
        people = [{"id": n, "email": f"p{n}@example.org", "crm_ref": f"c-{n}"} for n in range(1, 7)]
        session.execute(insert(customers), people)
        key, token = create_api_key(
            session, NewApiKey(name="shop", approvals_needed=approvals_needed), actor="cli"
        )
    database.dispose()
    runtime = make_runtime(url, **settings)
    return Api(make_app(runtime), runtime, key, token)


@pytest.fixture
def make_runtime(tmp_path: Path) -> Iterator[Callable[..., Runtime]]:
    made = []

    def make(url: str, **settings: Any) -> Runtime:
        made.append(_runtime(tmp_path, url, **settings))
        return made[-1]

    yield make
    for runtime in made:
        runtime.db.dispose()


@pytest.fixture
def make_api(make_runtime: Callable[..., Runtime]) -> Callable[..., Api]:
    return partial(_api, make_runtime)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One for all tests of a module: a caller who may call as often as they like.

    For what holds whatever is in the database, and is tried too often for a database each.
    """
    folder = tmp_path_factory.mktemp("shared")
    url = f"sqlite:///{folder / 'shared.db'}"
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("migrated_sqlite_template"), folder / "shared.db")
    else:
        admin = request.getfixturevalue("postgres_admin")
        url = admin.create(template=request.getfixturevalue("migrated_postgres_template"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        _forget_settings(monkeypatch)
        api = _api(partial(_runtime, folder), url, api_calls_per_minute=0)
    yield api
    api.runtime.db.dispose()
    if request.param == "postgresql":
        admin.drop(url)


@pytest.fixture
def api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    """Requests of this caller need an approval."""
    return make_api(migrated_url)


@pytest.fixture
def correcting_api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    """Executed at once, and the system behind it takes corrections, though by hand."""
    return make_api(migrated_url, approvals_needed=0, resolvers=CORRECTING)


@pytest.fixture
def trusted_api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    """Requests of this caller are executed at once."""
    return make_api(migrated_url, approvals_needed=0)


@pytest.fixture
def desk(api: Api) -> Desk:
    """A caller who may operate."""
    return Desk(api, "operate:write")


@pytest.fixture
def lite(make_api: Callable[..., Api], migrated_sqlite_url: str) -> Desk:
    """The same, for what is the same on either database."""
    return Desk(make_api(migrated_sqlite_url), "operate:write")


@pytest.fixture
def now() -> Iterator[ManualClock]:
    """A clock that starts at the real time: receivers refuse signatures that are minutes old."""
    with clock.pretend(datetime.now(UTC)) as moving:
        yield moving


@pytest.fixture
def oncall() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def open_api(make_api: Callable[..., Api], migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Api:
    """Messages may go to this machine, and requests are executed at once."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return make_api(migrated_url, approvals_needed=0, allow_private_targets="127.0.0.1/32")


@pytest.fixture
def join(open_api: Api) -> Iterator[Join]:
    """A new integrator with a key of its own, and a receiver of its messages."""
    with ExitStack() as stack:

        def new(name: str, *scopes: Scope, approvals: int = 0) -> Integrator:
            granted = [*MESSAGES, *scopes]
            with open_api.runtime.db.begin() as session:
                new_key = NewApiKey(name=name, approvals_needed=approvals, scopes=granted)
                made = create_api_key(session, new_key, actor="cli")
            return Integrator(open_api, made[1], stack.enter_context(receiver()))

        yield new
