"""What every test can ask for: databases on both engines, a Redis-protocol server, a browser.

One PostgreSQL and one Valkey serve the whole run. Under pytest-xdist the controlling process starts them
and tells the workers where they are; without it they start when the first test asks.
EFFACED_TEST_DATABASE_URL and EFFACED_TEST_REDIS_URL name others to use: the first must allow CREATE
DATABASE, the second is emptied again and again.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import kept_connections
import postgres_rows
import psycopg
import pytest
import redis
from argon2 import PasswordHasher
from quick_database import open_quickly
from sqlalchemy import make_url
from waiting import PATIENCE

from effaced.accounts import passwords
from effaced.core import clock, log
from effaced.core.db import Database
from effaced.core.errors import EffacedError
from effaced.core.gc_pause import gc_paused
from effaced.core.servers import Valkey, postgres_server, valkey_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Whoever starts a run in the background has it ignore Ctrl-C, and with it every process that tests start
# to be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

WAITS_FOR_OTHERS = {"story", "faults"}
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
NO_CHROMIUM = "chromium is not installed (apt-get install chromium, or EFFACED_CHROMIUM=/path/to/it)"
CHROMIUM_FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

# Files there need no disk. A run needs a part of the room, and programs that tests install are run there.
MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3

# Wall time says nothing on a shared machine, so no example is failed for being slow.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, database=None)
hypothesis.settings.load_profile("ci" if IN_CI else "default")


class Servers:
    """The servers of this run, each started when first asked for."""

    def __init__(self, known: dict[str, str]) -> None:
        self._known = known
        self._stack = ExitStack()

    def postgres(self) -> str:
        if "postgres" not in self._known:
            self._known["postgres"] = os.environ.get(
                "EFFACED_TEST_DATABASE_URL"
            ) or self._stack.enter_context(postgres_server())
        return self._known["postgres"]

    def redis(self) -> str:
        if "redis" not in self._known:
            self._known["redis"] = os.environ.get("EFFACED_TEST_REDIS_URL") or self._stack.enter_context(
                valkey_server(databases=1024)
            )
        return self._known["redis"]

    def close(self) -> None:
        self._stack.close()


SERVERS = pytest.StashKey[Servers]()


def has_room(folder: Path) -> bool:
    """Whether tests can keep their files there."""
    try:
        about = os.statvfs(folder)
    except OSError:
        return False
    usable = os.access(folder, os.W_OK | os.X_OK) and not about.f_flag & os.ST_NOEXEC
    return usable and about.f_bavail * about.f_frsize > ROOM


def pytest_configure(config: pytest.Config) -> None:
    # SQLite waits for the disk at each commit, and thousands of tests commit.
    if "TMPDIR" not in os.environ and has_room(MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
    # As the commands do it: unconfigured, structlog would render every logged exception with its values.
    log.configure("error", "json")
    known = getattr(config, "workerinput", {}).get("effaced_servers", {})
    config.stash[SERVERS] = Servers(dict(known))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist is about to start a worker: tell it where the servers are."""
    servers = node.config.stash[SERVERS]
    try:
        node.workerinput["effaced_servers"] = {"postgres": servers.postgres(), "redis": servers.redis()}
    except EffacedError as problem:
        raise pytest.UsageError(str(problem)) from problem


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[SERVERS].close()


# --- databases ---------------------------------------------------------------------------------------


class PostgresAdmin:
    """Makes and drops databases on the run's PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql")

    def create(self, *, template: str | None = None) -> str:
        name = f"effaced_test_{secrets.token_hex(6)}"
        # Copied as files: half the work of the usual way, which writes every page into the log.
        copied = f' TEMPLATE "{template}" STRATEGY file_copy' if template else ""
        self._execute(f'CREATE DATABASE "{name}"{copied}')
        return self.url_of(name)

    def url_of(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)

    def drop(self, url: str) -> None:
        self._execute(f'DROP DATABASE IF EXISTS "{make_url(url).database}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        with closing(
            psycopg.connect(self._url.render_as_string(hide_password=False), autocommit=True)
        ) as connection:
            connection.execute(statement.encode())


@pytest.fixture
def noon() -> Iterator[clock.ManualClock]:
    """It is noon of 2 March 2026 until the clock is advanced."""
    with clock.pretend(datetime(2026, 3, 2, 12, tzinfo=UTC)) as moving:
        yield moving


@pytest.fixture(scope="session")
def postgres_admin(pytestconfig: pytest.Config) -> PostgresAdmin:
    return PostgresAdmin(pytestconfig.stash[SERVERS].postgres())


@pytest.fixture
def fresh_postgres_url(postgres_admin: PostgresAdmin) -> Iterator[str]:
    """A new, empty PostgreSQL database."""
    url = postgres_admin.create()
    yield url
    postgres_admin.drop(url)


@pytest.fixture
def fresh_sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'fresh.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A new, empty database; the test runs once per engine."""
    url: str = request.getfixturevalue(
        "fresh_sqlite_url" if request.param == "sqlite" else "fresh_postgres_url"
    )
    return url


@pytest.fixture(scope="session")
def migrated_postgres_template(postgres_admin: PostgresAdmin) -> Iterator[str]:
    """The name of a PostgreSQL database with effaced's tables, to be copied."""
    from effaced.migrate import upgrade

    url = postgres_admin.create()
    upgrade(url)
    yield make_url(url).database or ""
    postgres_admin.drop(url)


@pytest.fixture(scope="session")
def migrated_sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with effaced's tables, to be copied."""
    from effaced.migrate import upgrade

    path = tmp_path_factory.mktemp("template") / "migrated.db"
    upgrade(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture(scope="session")
def spare_postgres_urls(postgres_admin: PostgresAdmin) -> Iterator[list[str]]:
    """Databases that a test has used and left in their shape."""
    urls: list[str] = []
    yield urls
    for url in urls:
        kept_connections.close_all(make_url(url).database or "")
        postgres_admin.drop(url)


@pytest.fixture(scope="session")
def migrated_postgres_shape(postgres_admin: PostgresAdmin, migrated_postgres_template: str) -> str:
    return postgres_rows.shape(postgres_admin.url_of(migrated_postgres_template))


@pytest.fixture
def migrated_postgres_url(
    postgres_admin: PostgresAdmin,
    migrated_postgres_template: str,
    migrated_postgres_shape: str,
    spare_postgres_urls: list[str],
) -> Iterator[str]:
    """A PostgreSQL database with effaced's tables and nothing in them."""
    if spare_postgres_urls:
        url = spare_postgres_urls.pop()
    else:
        url = postgres_admin.create(template=migrated_postgres_template)
        kept_connections.keep(make_url(url).database or "")
    yield url
    if postgres_rows.empty(url, migrated_postgres_shape):
        spare_postgres_urls.append(url)
    else:
        kept_connections.close_all(make_url(url).database or "")
        postgres_admin.drop(url)


@pytest.fixture
def migrated_sqlite_url(tmp_path: Path, migrated_sqlite_template: Path) -> str:
    """A new SQLite file with effaced's tables."""
    path = tmp_path / "migrated.db"
    shutil.copyfile(migrated_sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest) -> str:
    """A new database with effaced's tables; the test runs once per engine."""
    url: str = request.getfixturevalue(
        "migrated_sqlite_url" if request.param == "sqlite" else "migrated_postgres_url"
    )
    return url


@pytest.fixture
def db(migrated_url: str) -> Iterator[Database]:
    """A Database with effaced's tables; the test runs once per engine."""
    database = open_quickly(migrated_url)
    yield database
    database.dispose()


# --- Redis -------------------------------------------------------------------------------------------


@pytest.fixture
def redis_url(pytestconfig: pytest.Config) -> str:
    """An empty logical database of the run's Valkey; no other worker uses it."""
    worker = getattr(pytestconfig, "workerinput", {}).get("workerid", "gw0")
    server, number = pytestconfig.stash[SERVERS].redis(), int(worker.removeprefix("gw"))
    url = f"{server}?db={number}" if server.startswith("unix:") else f"{server.rstrip('/')}/{number}"
    with closing(redis.Redis.from_url(url)) as client:
        client.flushdb()
    return url


@pytest.fixture
def own_valkey() -> Iterator[Valkey]:
    """A running Valkey for this test alone, which may stop and start it."""
    server = Valkey()
    try:
        server.start()
        yield server
    finally:
        server.close()


# --- passwords ---------------------------------------------------------------------------------------


@pytest.fixture
def cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same argon2 with less work, for tests about what happens and not about what guessing costs."""
    passwords._dummy_hash.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(passwords, "_hasher", PasswordHasher(time_cost=2, memory_cost=64, parallelism=1))
        yield
    passwords._dummy_hash.cache_clear()


# --- the browser -------------------------------------------------------------------------------------


def chromium_path() -> str | None:
    named = os.environ.get("EFFACED_CHROMIUM")
    return shutil.which(named) if named else shutil.which("chromium") or shutil.which("/usr/bin/chromium")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one module.

    Not for the session: Playwright's event loop occupies the thread as long as it lives, and tests of
    other modules have loops of their own to run. A browser test that needs one runs it in a thread.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browser_page(chromium: Browser) -> Iterator[Page]:
    """A page in a profile of its own."""
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE * 1_000)
    yield context.new_page()
    context.close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("browser") and chromium_path() is None:
        (pytest.fail if IN_CI else pytest.skip)(NO_CHROMIUM)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with gc_paused():  # all that is collected stays to the end
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drills run only when asked for: `make drill`, or any -m that names them."""
    # Those that wait for other processes come first: at the end of a run they would wait alone.
    items.sort(key=lambda item: not WAITS_FOR_OTHERS.intersection(item.path.parts))
    if "drill" in config.option.markexpr:
        return
    drills = [item for item in items if item.get_closest_marker("drill")]
    if drills:
        config.hook.pytest_deselected(items=drills)
        items[:] = [item for item in items if not item.get_closest_marker("drill")]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Close the run by saying what it did not look at."""
    yield
    left_out = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report, pytest.TestReport) and NO_CHROMIUM in report.longreprtext
    ]
    if left_out:
        terminalreporter.section("left out", yellow=True)
        for nodeid in left_out:
            terminalreporter.line(nodeid)
        terminalreporter.line(f"Browser tests left out: {len(left_out)}, because {NO_CHROMIUM}.")
