"""effaced as it really runs, for stories and faults: the demo company, its vendors, real processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import loopback
from forked import Forked
from quick_database import open_quickly
from redis import Redis
from sqlalchemy import func, select
from waiting import PATIENCE, eventually

from effaced import demo
from effaced.accounts.api_keys import authenticate, create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.officers import create_officer
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.deadletters.tables import DeadLetter
from effaced.demo.company import create_company, fill_company, vendor_records
from effaced.demo.vendors import Vendors
from effaced.model import OutboxStatus, RequestKind, Role
from effaced.outbox.tables import OutboxRow
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.tables import Request
from effaced.runtime import Runtime

OFFICER, PASSWORD = "officer@company.example", "a-long-enough-password"
Process = Forked | subprocess.Popen[bytes]


@dataclass
class Company:
    """The demo company on one database, and the processes that a test starts on it."""

    database_url: str
    redis_url: str
    folder: Path
    vendors: Vendors
    people: list[int]
    token: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    afresh: bool = False
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.db = open_quickly(self.database_url)

    # --- processes ---

    def start(self, *arguments: str) -> Process:
        log = self.folder / f"{arguments[0]}.log"
        process = (_exec if self.afresh else Forked)(arguments, self.environ, self.folder, log)
        self.processes.append(process)
        return process

    def start_web(self) -> str:
        began = len(addresses_in(self.log("web")))
        self.web = self.start("web", "--port", "0")
        self.eventually(lambda: len(addresses_in(self.log("web"))) > began, "the web process to say where")
        self.address = addresses_in(self.log("web"))[-1]
        self.eventually(lambda: _answers(f"{self.address}/readyz"), "the web process to be ready")
        return self.address

    def kill(self, process: Process) -> None:
        """As the kernel does it when memory runs out: no warning, children included."""
        for pid in (*descendants(process.pid), process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE)

    def log(self, name: str) -> str:
        """What it has written; nothing if it has not begun."""
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill(process)
        self.db.dispose()

    # --- asking for things ---

    def post(self, person: int, **headers: str) -> httpx.Response:
        return loopback.post(
            f"{self.address}/api/v1/requests",
            json={"kind": "erasure", "subject": {"id": str(person)}},
            headers={"Authorization": f"Bearer {self.token}", **headers},
        )

    def correct(self, person: int, **corrections: object) -> httpx.Response:
        return loopback.post(
            f"{self.address}/api/v1/requests",
            json={"kind": "rectification", "subject": {"id": str(person)}, "corrections": corrections},
            headers={"Authorization": f"Bearer {self.token}"},
        )

    def ask(self, request_id: str) -> httpx.Response:
        return loopback.get(
            f"{self.address}/api/v1/requests/{request_id}?expand=entries&expand=events",
            headers={"Authorization": f"Bearer {self.token}"},
        )

    def get(self, request_id: str) -> dict[str, Any]:
        answer = self.ask(request_id)
        assert answer.status_code == 200
        body: dict[str, Any] = answer.json()
        return body

    def approve(self, ref: str) -> None:
        """As an officer does: sign in to the console, open the request, give a reason."""
        with loopback.client(base_url=self.address, follow_redirects=True) as officer:
            page = officer.get("/console/sign-in")
            signing_in = {"email": OFFICER, "password": PASSWORD, "csrf_token": _csrf_token(page.text)}
            officer.post("/console/sign-in", data=signing_in)
            page = officer.get(f"/console/requests/{ref}")
            action = re.search(r'action="([^"]*approve[^"]*)"', page.text)
            assert action is not None
            reason = {"reason": "Identity checked by phone.", "csrf_token": _csrf_token(page.text)}
            officer.post(action.group(1), data=reason)

    def leave_approved(self, person: int) -> UUID:
        """Take a request in as a web process does that is killed before it can execute it."""
        runtime = self.runtime()
        with self.db.begin() as session:
            key = authenticate(session, self.token)
            intake = receive(
                session,
                runtime.keyring,
                runtime.plan,
                IntakeRequest(RequestKind.ERASURE, str(person), api_key=key),
            )
            return intake.request.id

    # --- looking ---

    def eventually(self, holds: Callable[[], object], what: str) -> None:
        """Wait until it holds; in vain, tell how the entries, the queue and the processes stand."""
        try:
            eventually(holds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.describe()}") from None

    def describe(self) -> str:
        """How things stand: what has not succeeded, what waits in Redis, what the processes said last."""
        now = clock.now()
        lines = [
            f"{entry.resolver} {entry.entry_id}: {entry.status}, attempts {entry.attempts}, crashes"
            f" {entry.crashes}, alone {entry.claimed_alone}, token {entry.token}, {entry.last_error}, gate"
            f" {(entry.gate - now).total_seconds() if entry.gate else None}"
            for entry in self.entries()
            if entry.status is not OutboxStatus.SUCCEEDED or entry.verify_due_at
        ]
        with closing(Redis.from_url(self.redis_url, decode_responses=True)) as redis:
            keys = sorted(redis.scan_iter(match="effaced:*"))
            lines += [f"queue: {redis.lrange('effaced:queue:doorbell', 0, -1)}", f"keys: {keys[:40]}"]
        lines += [
            f"{process.args}: pid {process.pid}, exit {process.poll()}" for process in self.processes[-4:]
        ]
        lines += [
            f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.folder.glob("*.log"))
        ]
        return "\n".join(lines)

    def statuses(self) -> set[OutboxStatus]:
        with self.db.read() as session:
            return set(session.scalars(select(OutboxRow.status)))

    def entries(self) -> Sequence[OutboxRow]:
        with self.db.read() as session:
            return session.scalars(select(OutboxRow)).all()

    def requests(self) -> dict[UUID, str]:
        with self.db.read() as session:
            return {row.id: row.status.value for row in session.scalars(select(Request))}

    def all_completed(self, number: int) -> bool:
        statuses = list(self.requests().values())
        return len(statuses) == number and set(statuses) == {"completed"}

    def letters(self) -> list[UUID]:
        with self.db.read() as session:
            return list(session.scalars(select(DeadLetter.id)))

    def events(self, kind: str) -> int:
        with self.db.read() as session:
            return session.scalar(select(func.count()).where(AuditEvent.type == kind)) or 0

    def runtime(self) -> Runtime:
        known = {
            name.removeprefix("EFFACED_").lower(): value
            for name, value in self.environ.items()
            if name.removeprefix("EFFACED_").lower() in Settings.model_fields
        }
        return Runtime(Settings(**known), database=self.db)  # type: ignore[arg-type]


@contextmanager
def company(
    database_url: str, redis_url: str, folder: Path, *, afresh: bool = False, **settings: object
) -> Iterator[Company]:
    """A company of forty people whose requests need no approval, ready to be asked to forget them.

    `afresh` starts every process as a shell would, from nothing.
    """
    with ExitStack() as stack:
        vendors = stack.enter_context(Vendors())
        database = open_quickly(database_url)
        create_company(database.engine)
        with database.begin() as session:
            people = fill_company(session, 40)
            _, token = create_api_key(session, NewApiKey(name="shop", approvals_needed=0), actor="cli")
            create_officer(
                session,
                email=OFFICER,
                name="Olga",
                role=Role.OFFICER,
                password=PASSWORD,
                actor="cli",
            )
        database.dispose()
        for name, records in vendor_records(people).items():
            vendors.seed(name, records)
        where = Path(demo.__file__).parent
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")},
            "EFFACED_DATABASE_URL": database_url,
            "EFFACED_REDIS_URL": redis_url,
            "EFFACED_KEYS": new_key(),
            "EFFACED_DATAMAP": str(where / "datamap.yaml"),
            "EFFACED_RESOLVERS": str(where / "resolvers.yaml"),
            **vendors.environ,
            "EFFACED_SECURE_COOKIES": "false",
            "EFFACED_SWEEP_SECONDS": "0.5",
            **{f"EFFACED_{name.upper()}": str(value) for name, value in settings.items()},
        }
        os.environ.update(vendors.environ)
        made = Company(
            database_url,
            redis_url,
            folder,
            vendors,
            # Those who take no newsletter: nothing of theirs has to wait for an expiry.
            [each["id"] for each in people if each["id"] % 4 == 0],
            token,
            environ,
            afresh,
        )
        stack.callback(made.close)
        yield made


def _exec(
    arguments: tuple[str, ...], environ: dict[str, str], folder: Path, log: Path
) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "effaced", *arguments],
            env=environ,
            cwd=folder,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def addresses_in(text: str) -> list[str]:
    """Where servers have said that they listen, having asked for any free port."""
    return re.findall(r"http://127\.0\.0\.1:[1-9]\d*", text)


def _csrf_token(page: str) -> str:
    found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
    assert found is not None
    return found.group(1)


def _answers(url: str) -> bool:
    try:
        return loopback.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def descendants(pid: int) -> list[int]:
    """The processes that descend from this one, the deepest first."""
    try:
        direct = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return [each for child in direct for each in (*descendants(child), child)]
