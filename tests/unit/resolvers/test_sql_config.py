"""What resolvers.yaml says about a database, and how a wrong block is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest
from other_database import GOES, STAYS

from effaced.core.errors import ConfigurationError
from effaced.resolvers.load import load_registry
from effaced.resolvers.protocols import Limits, RectifyingResolver, VerifyingResolver
from effaced.resolvers.sql import from_config

URL = "postgresql://clerk:s3cret@db.shop.example/shop"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(dedent(GOES))
    return tmp_path


def load(folder: Path, keys: str = "", url: str = URL):
    path = folder / "resolvers.yaml"
    path.write_text(
        "version: 1\nresolvers:\n  shop:\n    kind: sql\n    ref: customer\n"
        f'    url: "${{SHOP_URL}}"\n    map: shop.yaml\n{keys}'
    )
    return load_registry(path, {"SHOP_URL": url}).get("shop")


def problems(folder: Path, keys: str = "", url: str = URL) -> list[str]:
    with pytest.raises(ConfigurationError) as told:
        load(folder, keys, url)
    assert "s3cret" not in str(told.value)
    return [each.message for each in told.value.problems]


def test_the_map_stands_beside_the_file(folder, monkeypatch):
    monkeypatch.chdir("/")
    assert load(folder).kind == "sql"


def test_can_look_and_corrects_what_its_map_says(folder):
    shop = load(folder)
    assert isinstance(shop.resolver, VerifyingResolver)
    assert isinstance(shop.resolver, RectifyingResolver)
    assert {"name", "email", "phone"} == shop.fields


def test_without_rectify_in_its_map_it_corrects_nothing(folder):
    (folder / "shop.yaml").write_text(dedent(GOES).partition("rectify:")[0])
    shop = load(folder)
    assert not isinstance(shop.resolver, RectifyingResolver)
    assert shop.fields is None


@pytest.mark.parametrize(
    ("url", "host"),
    [
        (URL, "db.shop.example:5432"),
        ("postgresql://clerk@db.shop.example:6432/shop", "db.shop.example:6432"),
        ("postgresql:///shop", "localhost:5432"),
        ("postgresql:///shop?host=/run/postgresql", "/run/postgresql:5432"),
        ("sqlite:////srv/shop.db", None),
    ],
)
def test_systems_on_one_server_share_its_breaker(folder, url, host):
    assert host == load(folder, url=url).host


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "    find_by: mail\n",
            "resolvers.shop.find_by: the map has no such identifier; did you mean 'email'?",
        ),
        ("    several: all\n", "resolvers.shop: ignore_case and several are for find_by, which is not there"),
        (
            "    several: some\n    find_by: email\n",
            "resolvers.shop.several: Input should be 'refuse' or 'all'",
        ),
        ("    lock_timeout: 0\n", "resolvers.shop.lock_timeout: Input should be greater than 0"),
        ("    findby: email\n", "resolvers.shop.findby: unknown key; did you mean 'find_by'?"),
    ],
)
def test_a_wrong_key_is_refused_by_name(folder, keys, said):
    assert [said] == problems(folder, keys)


def test_of_several_kinds_of_people_one_has_to_be_named(folder):
    text = dedent(GOES).replace("subject: {table: users, key: id}\nidentifiers: {email: email}\n", "")
    people = "subjects: {user: {table: users, key: id}, staff: {table: staff, key: no}}\n"
    text = text.replace("tables:\n", people + "tables:\n  staff: {columns: {no: delete}}\n", 1)
    (folder / "shop.yaml").write_text(text)
    (said,) = problems(folder)
    assert said.endswith("the map has several kinds of people; say which: user, staff")
    assert load(folder, "    subject: user\n").kind == "sql"


def test_what_is_no_database_is_refused(folder):
    (said,) = problems(folder, url="mysql://clerk:s3cret@db/shop")
    assert said.startswith("resolvers.shop.url: expected postgresql://")


def test_every_mistake_of_its_map_is_told_with_its_line(folder):
    (folder / "shop.yaml").write_text(dedent(STAYS).replace("not_personal", "not_persnal"))
    found = problems(folder)
    assert len(found) > 3
    assert all(each.startswith("resolvers.shop.map: ") and "shop.yaml:" in each for each in found)


def test_a_map_that_is_not_there_is_told(folder):
    (folder / "shop.yaml").unlink()
    (said,) = problems(folder)
    assert "shop.yaml" in said


def test_nothing_is_connected_to_when_it_is_made(folder):
    """A database that is down stops nobody from starting."""
    block = {"url": "postgresql://nobody@127.0.0.1:1/none", "map": str(folder / "shop.yaml")}
    assert from_config("shop", block, Limits(timeout=timedelta(seconds=1))).host == "127.0.0.1:1"


def test_a_retention_that_nobody_would_end_is_refused_with_its_line(folder):
    (folder / "shop.yaml").write_text(dedent(STAYS).replace('10 years"', '10 years", until: 2031-12-31'))
    (said,) = problems(folder)
    assert "shop.yaml:13: invoices.number.retain.until: nobody would end it in another database" in said
