"""docs/how-to/embed.md, followed to the letter: its files are written and run, on both databases."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import forked
import pytest
from sqlalchemy import create_engine, text

from effaced.core.crypto import new_key
from effaced.library import __all__ as library_names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/embed.md").read_text(encoding="utf-8")
FILE = re.compile(r"\*\*`([\w.]+)`\*\*\n\n```\w+\n(.*?)```", re.DOTALL)
ASK = """
import json, sys
from shop import app, privacy, sessions
app.testing = False
client = app.test_client()
answers = []
for method, path, broken in json.loads(sys.argv[1]):
    app.config["FAIL_BEFORE_COMMIT"] = broken
    answer = client.open(path, method=method)
    answers.append([answer.status_code, (answer.json or {}).get("ref") if answer.is_json else None])
print(json.dumps(answers))
"""


class Crm:
    """A CRM over HTTP that knows two people."""

    def __init__(self) -> None:
        self.people: dict[str, dict[str, Any]] = {"c-1": {"town": "Ulm"}, "c-2": {"town": "Bonn"}}
        crm = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                ref = self.path.removeprefix("/contacts/")
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status = 200 if ref in crm.people else 404
                if self.command == "DELETE":
                    crm.people.pop(ref, None)
                elif self.command == "PATCH" and status == 200:
                    crm.people[ref] |= json.loads(body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_DELETE = do_PATCH = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


class Shop:
    def __init__(self, folder: Path, url: str, crm: Crm) -> None:
        self.folder, self.engine = folder, create_engine(url)
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")},
            "SHOP_DATABASE": url,
            "EFFACED_KEYS": new_key(),
            "CRM_URL": crm.url,
        }
        for name, content in FILE.findall(PAGE):
            (folder / name).write_text(content, encoding="utf-8")

    def run(self, *arguments: str) -> str:
        done = forked.run(*arguments, environ=self.environ, folder=self.folder, python=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run_from_nothing(self, *arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *calls: tuple[str, str, bool]) -> list[tuple[int, str | None]]:
        return [tuple(each) for each in json.loads(self.run("-c", ASK, json.dumps(calls)))]

    def rows(self, query: str) -> list[Any]:
        with self.engine.connect() as connection:
            return [row[0] for row in connection.execute(text(query))]


@pytest.fixture
def crm() -> Iterator[Crm]:
    crm = Crm()
    yield crm
    crm.server.shutdown()
    crm.server.server_close()


@pytest.fixture
def shop(database_url: str, tmp_path: Path, crm: Crm) -> Iterator[Shop]:
    url = database_url.replace("postgresql://", "postgresql+psycopg://")
    shop = Shop(tmp_path, url, crm)
    shop.run("setup.py")
    with shop.engine.begin() as connection:
        for number, city in ((1, "Ulm"), (2, "Bonn")):
            values = f"{number}, '{number}@people.example', 'c-{number}', '{city}'"
            connection.execute(text(f"INSERT INTO customers VALUES ({values})"))
            connection.execute(text(f"INSERT INTO orders VALUES ({number}, {number}, 999)"))
    yield shop
    shop.engine.dispose()


def test_erases_in_the_applications_own_transaction_and_calls_afterwards(shop: Shop, crm: Crm) -> None:
    ((status, ref), nobody) = shop.ask(("DELETE", "/account/1", False), ("DELETE", "/account/77", False))
    assert (status, nobody) == (202, (404, None))
    assert shop.rows("SELECT id FROM customers") == [2]
    assert shop.rows("SELECT customer_id FROM orders") == [2]
    assert shop.rows("SELECT ref FROM goodbyes") == [ref]
    assert set(crm.people) == {"c-1", "c-2"}, "nobody is called before the commit"
    assert "1 settled" in shop.run_from_nothing("carry_out.py")
    assert set(crm.people) == {"c-2"}
    assert shop.rows("SELECT status FROM effaced_requests") == ["completed"]


def test_what_the_application_rolls_back_has_never_happened(shop: Shop, crm: Crm) -> None:
    ((status, _),) = shop.ask(("DELETE", "/account/1", True))
    assert status == 500
    assert shop.rows("SELECT id FROM customers ORDER BY id") == [1, 2]
    assert shop.rows("SELECT ref FROM goodbyes") == []
    for table in ("effaced_requests", "effaced_outbox", "effaced_audit_events"):
        assert shop.rows(f"SELECT count(*) FROM {table}") == [0]
    assert "0 settled" in shop.run("carry_out.py")
    assert set(crm.people) == {"c-1", "c-2"}


def test_corrects_here_and_there(shop: Shop, crm: Crm) -> None:
    ((status, _),) = shop.ask(("PATCH", "/account/2/city/Gera", False))
    assert status == 202
    assert shop.rows("SELECT city FROM customers ORDER BY id") == ["Ulm", "Gera"]
    assert "1 settled" in shop.run("carry_out.py")
    assert crm.people == {"c-1": {"town": "Ulm"}, "c-2": {"town": "Gera"}}


def test_the_reference_names_everything_the_library_has() -> None:
    reference = (ROOT / "docs/reference/library.md").read_text(encoding="utf-8")
    assert [name for name in library_names if f"`{name}" not in reference] == []
