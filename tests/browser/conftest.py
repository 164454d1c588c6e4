"""A console that listens on loopback, and people in front of a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from quick_app import make_app
from waiting import PATIENCE
from werkzeug.serving import make_server

from effaced.core import clock
from tests.browser.seed import PASSWORD, House, fill, open_house

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
expect.set_options(timeout=PATIENCE * 1_000)


@dataclass(frozen=True)
class Site:
    """A house and the address of its console."""

    house: House
    url: str


@contextmanager
def listening(house: House) -> Iterator[Site]:
    server = make_server("127.0.0.1", 0, make_app(house.runtime), threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Site(house, f"http://127.0.0.1:{server.port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        house.runtime.db.dispose()


@contextmanager
def built(template: Path, folder: Path, *, filled: bool) -> Iterator[Site]:
    shutil.copyfile(template, folder / "site.db")
    with clock.pretend(NOON):
        house = open_house(f"sqlite:///{folder / 'site.db'}", folder)
        if filled:
            fill(house, NOON)
        with listening(house) as site:
            yield site


@pytest.fixture(scope="module")
def filled_site(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console with requests in every state; for tests of this module that change nothing.

    With few rows of each: filling it takes its time, and axe looks at every cell.
    """
    with built(migrated_sqlite_template, tmp_path_factory.mktemp("filled"), filled=True) as site:
        yield site


@pytest.fixture(scope="module")
def empty_site(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console where nothing has happened yet."""
    with built(migrated_sqlite_template, tmp_path_factory.mktemp("empty"), filled=False) as site:
        yield site


@pytest.fixture
def site(migrated_sqlite_template: Path, tmp_path: Path) -> Iterator[Site]:
    """A console of this test's own, with officers and people and no requests."""
    with built(migrated_sqlite_template, tmp_path, filled=False) as opened:
        yield opened


@dataclass
class Desk:
    """One person's browser. What the page complains about in its console is kept."""

    page: Page
    site: Site
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(self.site.url + path)

    def sign_in(self, name: str = "ada") -> None:
        self.go("/console/sign-in")
        self.page.get_by_label("E-mail address").fill(f"{name}@example.com")
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/console/")


@pytest.fixture
def desk_at(chromium: Browser) -> Iterator[Callable[..., Desk]]:
    """Opens a browser at a site and signs in. No error and nothing the policy blocks is tolerated."""
    opened = []

    def open_desk(site: Site, *, name: str | None = "ada", **options: object) -> Desk:
        context = chromium.new_context(**options)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE * 1_000)
        desk = Desk(context.new_page(), site)
        opened.append((context, desk))
        desk.page.on("console", lambda message: _keep(desk, message))
        desk.page.on("pageerror", lambda error: desk.complaints.append(str(error)))
        if name is not None:
            desk.sign_in(name)
        return desk

    yield open_desk
    complaints = [complaint for _, desk in opened for complaint in desk.complaints]
    for context, _ in opened:
        context.close()
    assert complaints == []


def _keep(desk: Desk, message: ConsoleMessage) -> None:
    # An error status that a test provokes is reported by browser and htmx; anything else is our mistake.
    provoked = message.text.startswith(("Failed to load resource", "Response Status Error Code"))
    if message.type in ("error", "warning") and not provoked:
        desk.complaints.append(message.text)
