"""docs/how-to/delete-my-account.md, followed to the letter: its files are written, its commands are run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import forked
import pytest
from pydantic import SecretStr
from served import served
from sqlalchemy import create_engine, text
from standardwebhooks.webhooks import Webhook

from effaced.core.config import Settings
from effaced.core.crypto import new_key
from tests.story.test_embed import Crm

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/delete-my-account.md").read_text(encoding="utf-8")
FILE = re.compile(r"\*\*`([\w.]+)`\*\*\n\n```\w+\n(.*?)```", re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
VISIT = """
import json, sys
from shop import app
import hooks
client = app.test_client()
answers = []
for method, path, customer, body, headers in json.loads(sys.argv[1]):
    if customer is not None:
        with client.session_transaction() as session:
            session["customer_id"] = customer
    answer = client.open(path, method=method, data=body, headers=headers)
    answers.append([answer.status_code, answer.headers.get("Location"), answer.text])
print(json.dumps(answers))
"""
Visit = tuple[str, str, int | None, str | None, dict[str, str]]


class House:
    """A shop, its database, and the effaced beside it."""

    def __init__(self, folder: Path, url: str, crm: Crm) -> None:
        self.folder, self.engine = folder, create_engine(url)
        for name, content in FILE.findall(PAGE):
            (folder / name).write_text(content, encoding="utf-8")
        self.settings = Settings(
            database_url=url,
            keys=SecretStr(new_key()),
            datamap=folder / "datamap.yaml",
            resolvers=folder / "resolvers.yaml",
        )
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")},
            "EFFACED_DATABASE_URL": url,
            "EFFACED_KEYS": self.settings.keys.get_secret_value(),
            "CRM_URL": crm.url,
        }
        with self.engine.begin() as connection:
            connection.execute(
                text("CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT, crm_id TEXT)")
            )
            connection.execute(
                text("INSERT INTO customers VALUES (1, 'a@x.example', 'c-1'), (2, 'b@x.example', 'c-2')")
            )

    def command(self, line: str) -> str:
        """One of the page's commands."""
        assert line in COMMANDS
        done = forked.run(*shlex.split(line)[1:], environ=self.environ, folder=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def visit(self, *visits: Visit) -> list[tuple[int, str | None, str]]:
        """What the shop answers, in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-c", VISIT, json.dumps(visits)],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return [tuple(each) for each in json.loads(done.stdout)]

    def customers(self) -> list[int]:
        with self.engine.connect() as connection:
            return [row[0] for row in connection.execute(text("SELECT id FROM customers"))]


@pytest.fixture
def crm() -> Iterator[Crm]:
    crm = Crm()
    yield crm
    crm.server.shutdown()
    crm.server.server_close()


@pytest.fixture
def house(database_url: str, tmp_path: Path, crm: Crm) -> Iterator[House]:
    url = database_url.replace("postgresql://", "postgresql+psycopg://")
    house = House(tmp_path, url, crm)
    house.command("effaced migrate")
    (key,) = re.findall(r"eff_\w+", house.command('effaced apikey new --name "web shop" --approvals 0'))
    assert "effaced web" in COMMANDS
    with served(house.settings, tmp_path, CRM_URL=crm.url) as address:
        shop = {"SHOP_SECRET": "s", "EFFACED_URL": address, "EFFACED_API_KEY": key}
        house.environ |= shop | {"EFFACED_WEBHOOK_SECRET": SECRET}
        yield house
    house.engine.dispose()


def press(customer: int | None) -> Visit:
    return ("POST", "/account/delete", customer, None, {})


def test_the_button_erases_whoever_is_signed_in_here_and_everywhere(house: House, crm: Crm) -> None:
    nobody, pressed = house.visit(press(None), press(1))
    assert (nobody[0], pressed[0]) == (401, 302)
    assert house.customers() == [2]
    goodbye: Visit = ("GET", str(pressed[1]), None, None, {})
    assert house.visit(goodbye)[0][2].endswith("your data is being erased.")
    assert set(crm.people) == {"c-1", "c-2"}
    house.command("effaced drain")
    assert set(crm.people) == {"c-2"}
    done, unknown = house.visit(goodbye, ("GET", "/goodbye/ER-0000-0000", None, None, {}))
    assert done[2].endswith("your data is erased everywhere.")
    assert unknown[0] == 404


def test_messages_are_heard_if_they_are_signed(house: House) -> None:
    body, now = '{"type": "request.completed"}', datetime.now(UTC)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET).sign("msg_1", now, body),
    }
    answers = house.visit(
        ("POST", "/hooks/effaced", None, body, headers), ("POST", "/hooks/effaced", None, body + " ", headers)
    )
    assert [each[0] for each in answers] == [204, 401]


def test_the_button_has_at_most_20_lines() -> None:
    (shop,) = [content for name, content in FILE.findall(PAGE) if name == "shop.py"]
    assert len([line for line in shop.splitlines() if line.strip()]) <= 20
