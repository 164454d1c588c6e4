"""A small company with requests in every state, made the way they come about: by intake, officers and runner.

The vendors are scripted: what each answers depends on the person, and `Script` holds the exceptions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from officers import new_officer
from planned import planned
from pydantic import SecretStr
from quick_database import open_quickly
from sqlalchemy import Column, Date, ForeignKey, Integer, MetaData, String, Table, text

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.tables import ApiKey, Officer
from effaced.audit.notes import write_note
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import ResolverError
from effaced.model import Correction, CorrectionValue, RequestKind, Role, SubjectRef
from effaced.outbox.read import EntryLine, entries_of
from effaced.requests.approve import approve_and_execute
from effaced.requests.intake import IntakeRequest, receive
from effaced.resolvers.manual import ManualConfig, ManualResolver
from effaced.resolvers.protocols import AlreadyAbsent, Answer, Erased, Rectified, Scheduled, TransientFailure
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.runtime import Runtime
from effaced.triage import pause as steer

PASSWORD = "correct horse battery staple"
DATAMAP = """
version: 1
subject: {table: customers, key: id}
identifiers: {email: email}
refs:
  person: {template: "{id}"}
  paper_file: {column: box}
tables:
  customers:
    columns:
      id: not_personal
      name: {anonymise: fixed_text, text: erased}
      email: {anonymise: random_unique}
      box: delete
  orders:
    link: {to: customers, on: {customer_id: id}}
    columns: {id: delete, customer_id: delete, article: delete}
  invoices:
    link: {to: customers, on: {customer_id: id}}
    columns:
      id: not_personal
      customer_id: {retain: {basis: "tax law, ten years", until: billed_on + 10 years}}
      billed_on: {retain: {basis: "tax law, ten years", until: billed_on + 10 years}}
rectify: {name: customers.name, email: customers.email}
"""
VENDORS = ("crm", "files", "mailing", "payment")
# These have a folder in the cellar, which nobody can call.
ON_PAPER = (18, 19)
# These were billed so long ago that nothing of it need be kept.
OLD = (20, 21)
INSTRUCTIONS = "Take the folder out of the cellar and shred it. Two people, please."
RESOLVERS = "version: 1\nresolvers:\n" + "".join(
    f"  {name}: {{kind: noop, ref: person}}\n" for name in VENDORS
)

company = MetaData()
customers = Table(
    "customers",
    company,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", String(80), nullable=False),
    Column("email", String(120), nullable=False, unique=True),
    Column("box", String(20)),
)
orders = Table(
    "orders",
    company,
    Column("id", Integer, primary_key=True),
    Column("customer_id", ForeignKey("customers.id"), nullable=False),
    Column("article", String(80)),
)
invoices = Table(
    "invoices",
    company,
    Column("id", Integer, primary_key=True),
    Column("customer_id", ForeignKey("customers.id"), nullable=False),
    Column("billed_on", Date),
)


@dataclass
class Script:
    """What the vendors answer to whom; whoever is not in here is erased at once and really gone."""

    answers: dict[tuple[str, str], Callable[[], Answer | Exception]] = field(default_factory=dict)
    still_there: set[tuple[str, str]] = field(default_factory=set)
    silent: set[tuple[str, str]] = field(default_factory=set)
    corrects: dict[tuple[str, str], Callable[[], Rectified | Exception]] = field(default_factory=dict)


@dataclass(frozen=True)
class Vendor:
    name: str
    script: Script

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        answer = self.script.answers.get((self.name, ref.value), Erased)()
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass(frozen=True)
class CheckingVendor(Vendor):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        if (self.name, ref.value) in self.script.silent:
            raise TransientFailure("no answer", status_code=503)
        return (self.name, ref.value) not in self.script.still_there


@dataclass(frozen=True)
class CorrectingVendor(CheckingVendor):
    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified:
        answer = self.script.corrects.get((self.name, ref.value), Rectified)()
        if isinstance(answer, Exception):
            raise answer
        return answer


def _registry(script: Script) -> ResolverRegistry:
    """The CRM corrects anything, mailing should correct addresses and can't, files hold nothing of it."""
    archive = ManualResolver(ManualConfig(due_days=14, instructions=INSTRUCTIONS))
    return ResolverRegistry(
        (
            Registered("crm", "person", CorrectingVendor("crm", script)),
            Registered("files", "person", CheckingVendor("files", script), fields=frozenset()),
            Registered("mailing", "person", Vendor("mailing", script), fields=frozenset({"email"})),
            Registered("payment", "person", Vendor("payment", script), fields=frozenset()),
            Registered("archive", "paper_file", archive, kind="manual", after=("crm",)),
        )
    )


@dataclass
class House:
    """A running effaced with its officers, its company, and vendors that do as the script says."""

    runtime: Runtime
    ada: Officer
    ben: Officer
    cleo: Officer
    shop: ApiKey
    two_eyes: ApiKey
    script: Script

    def ask(self, person: int, *, key: ApiKey | None = None, reason: str | None = None) -> UUID:
        """The person wants to be forgotten."""
        with self.runtime.db.begin() as session:
            intake = receive(
                session,
                self.runtime.keyring,
                self.runtime.plan,
                IntakeRequest(RequestKind.ERASURE, str(person), api_key=key or self.shop, reason=reason),
                zone=self.runtime.settings.zone,
            )
            return intake.request.id

    def correct(self, person: int, **corrections: CorrectionValue) -> UUID:
        """The person wants something put right."""
        with self.runtime.db.begin() as session:
            intake = receive(
                session,
                self.runtime.keyring,
                self.runtime.plan,
                IntakeRequest(
                    RequestKind.RECTIFICATION,
                    str(person),
                    corrections=[Correction(name, value) for name, value in corrections.items()],
                    api_key=self.shop,
                ),
                zone=self.runtime.settings.zone,
            )
            return intake.request.id

    def forget_map(self) -> None:
        """Have the runtime read the data map's file again, as a restarted process would."""
        for name in ("datamap", "ender"):
            self.runtime.__dict__.pop(name, None)
        self.runtime._plan = self.runtime._retention = self.runtime._executor = None

    def pause(
        self, resolver: str, *, reason: str = "The vendor moves house.", hours: float | None = None
    ) -> None:
        with self.runtime.db.begin() as session:
            actor = f"officer:{self.ben.id}"
            steer.pause(session, self.runtime.keyring, resolver, actor=actor, reason=reason, hours=hours)

    def hold_open(self, resolver: str, *, reason: str = "They lose every second call today.") -> None:
        with self.runtime.db.begin() as session:
            actor = f"officer:{self.ben.id}"
            note = write_note(session, self.runtime.keyring, reason, author=actor)
            self.runtime.breakers.force_open(
                f"resolver:{resolver}", actor=actor, seconds=5_400, note=note, session=session
            )

    def entry(self, request_id: UUID, resolver: str) -> EntryLine:
        with self.runtime.db.read() as session:
            return next(each for each in entries_of(session, request_id) if each.resolver == resolver)

    def approve(
        self, request_id: UUID, *, by: Officer | None = None, reason: str = "Identity checked."
    ) -> None:
        officer = by or self.ada
        approve_and_execute(self.runtime.executor, request_id, by=officer.id, reason=reason)

    def run(self) -> None:
        """Let the runner do all that is due. In a thread: where a browser is, a loop is running already."""
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(self.runtime.runner().run_once())).result()


def open_house(url: str, folder: Path, *, people: int = 120, zone: str = "Europe/Berlin") -> House:
    """The company's tables with people in them, officers of every role, and a runtime over it all."""
    (folder / "datamap.yaml").write_text(DATAMAP)
    (folder / "resolvers.yaml").write_text(RESOLVERS)
    settings = Settings(
        database_url=url,
        keys=SecretStr(new_key()),
        datamap=folder / "datamap.yaml",
        resolvers=folder / "resolvers.yaml",
        secure_cookies=False,
        time_zone=zone,
    )
    runtime, script = Runtime(settings, database=open_quickly(url)), Script()
    runtime.__dict__["registry"] = _registry(script)
    _move_in(runtime.db, people)
    with runtime.db.begin() as session:
        runtime._plan = planned(session, settings.datamap)
        ada = new_officer("ada@example.com", name="Ada Okafor", password=PASSWORD)
        ben = new_officer("ben@example.com", name="Ben Lindqvist", role=Role.ADMIN, password=PASSWORD)
        cleo = new_officer("cleo@example.com", name="Cleo Marín", role=Role.AUDITOR, password=PASSWORD)
        session.add_all([ada, ben, cleo])
        shop, _ = create_api_key(session, NewApiKey(name="web shop", approvals_needed=1), actor="cli")
        two, _ = create_api_key(session, NewApiKey(name="customer service", approvals_needed=1), actor="cli")
        two.approvals_needed = 2
    return House(runtime, ada, ben, cleo, shop, two, script)


def _move_in(database: Database, people: int) -> None:
    everybody = range(1, people + 1)
    rows = {
        "customers (id, name, email, box)": [
            f"{n}, 'Person {n}', 'p{n}@example.com', " + (f"'K-{n}'" if n in ON_PAPER else "NULL")
            for n in everybody
        ],
        "orders (customer_id, article)": [f"{n}, 'lamp'" for n in everybody for _ in range(1 + n % 4)],
        "invoices (customer_id, billed_on)": [
            f"{n}, '{2015 if n in OLD else 2026}-01-05'" for n in everybody
        ],
    }
    with database.begin() as session:
        company.create_all(session.connection(), checkfirst=False)
        # Each in one statement: from a list of values, the driver makes one for each row.
        for table, lines in rows.items():
            session.execute(text(f"INSERT INTO {table} VALUES ({'), ('.join(lines)})"))


def fill(house: House, now: datetime, *, completed: int = 4) -> None:
    """Requests in every state, over the forty days before `now`; `completed` of them plain successes."""
    _write_script(house.script, now)
    plot: list[tuple[float, Callable[[], object]]] = []

    def executed(
        days: float, person: int, *, by: Officer | None = None, reason: str = "Identity checked."
    ) -> None:
        plot.append((days, lambda: house.approve(house.ask(person), by=by, reason=reason)))
        plot.append((days - 0.01, house.run))

    for person in (1, 2):
        executed(39.3, person, reason="Signature compared with the contract.")
    plot += [(39.2 - hours / 24, house.run) for hours in (1, 2, 4, 8, 16, 24, 48, 72, 96)]
    for n in range(completed):
        executed(29 - 0.9 * n, 20 + n, by=(house.ada, house.ben)[n % 2])
    for days, person in ((21, 8), (20, 5), (12, 6), (9, 7), (8, 3), (7, 4)):
        executed(days, person, by=house.ben, reason="Checked by telephone.")
    plot.append((3.9, house.run))
    for days, person in ((26.4, 9), (25.2, 10), (0.4, 13)):
        plot.append((days, lambda person=person: house.ask(person)))
    of_two: list[UUID] = []
    plot.append((6, lambda: of_two.append(house.ask(11, key=house.two_eyes))))
    plot.append((2, lambda: house.approve(of_two[0], reason="First of two: address matches.")))
    plot.append((2, lambda: house.ask(12, reason="Asked in the chat, signed in to the account.")))
    for person in (15, 16, 17):
        executed(1.1, person)
    executed(0.02, 14)
    for person in ON_PAPER:
        executed(3.3, person)
        plot.append((3.2, house.run))  # the archive waits for the CRM, and then for a person
    plot.append((1.9, lambda: house.correct(56, name="Ada Correct", email="ada.correct@example.com")))
    plot.append((1.8, lambda: house.approve(house.correct(57, email="eva.correct@example.com"))))
    plot.append((1.7, house.run))
    plot.append((0.5, lambda: house.pause("payment", reason="Their maintenance, until Monday.", hours=72)))
    executed(0.3, 58)
    plot.append((0.001, lambda: house.hold_open("mailing")))

    with clock.pretend(now - timedelta(days=40)) as time:
        for days, act in sorted(plot, key=lambda line: -line[0]):
            time.at = now - timedelta(days=days)
            act()


def _write_script(script: Script, now: datetime) -> None:
    script.answers |= {
        ("crm", "1"): lambda: ResolverError("refused", code="http_400"),
        ("payment", "2"): lambda: TransientFailure("down", status_code=503),
        ("mailing", "5"): lambda: Scheduled(now + timedelta(days=3, hours=5)),
        ("mailing", "6"): lambda: Scheduled(now + timedelta(days=18)),
        ("mailing", "7"): lambda: Scheduled(now + timedelta(days=61)),
        ("payment", "8"): lambda: Scheduled(next(horizons)),
        ("crm", "14"): lambda: TransientFailure("down", status_code=502),
        ("files", "15"): lambda: ResolverError("gone", code="http_410"),
        ("payment", "16"): AlreadyAbsent,
        ("crm", "17"): lambda: ResolverError("refused", code="http_400"),
    }
    horizons = iter((now - timedelta(days=4), now + timedelta(days=24)))
    script.still_there.add(("files", "3"))
    script.silent.add(("crm", "4"))
