"""The wheel alone, in a new environment and far from the checkout, serves the console."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import loopback
import pytest
from company_house import addresses_in
from waiting import PATIENCE, eventually

CHECKOUT = Path(__file__).parents[2]
DATAMAP = """
version: 1
subject: {table: customers, key: id}
tables:
  customers:
    columns: {id: not_personal, name: delete}
"""
RESOLVERS = """
version: 1
resolvers: {}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=CHECKOUT)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new environment that holds the wheel; its dependencies are borrowed from ours."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], cwd=folder)
    python = folder / "venv" / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", wheel], cwd=folder)
    # Paths from a .pth file come last, and .pth files found there are not followed: the package itself
    # can only be the wheel's, never the checkout's.
    site = next((folder / "venv").glob("lib/python*/site-packages"))
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "borrowed.pth").write_text("\n".join(sorted(ours)) + "\n")
    return python.parent


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("EFFACED_", "PYTHON"))}
    return kept | {"EFFACED_DATABASE_URL": f"sqlite:///{tmp_path / 'effaced.db'}"}


@pytest.fixture
def served(installed: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The address of `effaced web`, run from the wheel."""
    environment["EFFACED_KEYS"] = run(
        [installed / "effaced", "keys", "new"], cwd=tmp_path, env=environment
    ).strip()
    (tmp_path / "datamap.yaml").write_text(DATAMAP)
    (tmp_path / "resolvers.yaml").write_text(RESOLVERS)
    with closing(sqlite3.connect(tmp_path / "effaced.db")) as company:
        company.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    run([installed / "effaced", "migrate"], cwd=tmp_path, env=environment)
    log = tmp_path / "web.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [installed / "effaced", "web", "--port", "0"],
            cwd=tmp_path,
            env=environment,
            stderr=output,
            stdout=output,
        ) as process,
    ):
        try:
            eventually(
                lambda: addresses_in(log.read_text()) or process.poll() is not None, "the server to listen"
            )
            assert process.poll() is None, log.read_text()
            yield addresses_in(log.read_text())[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


@pytest.mark.parametrize("part", ["templates", "static", "migrations"])
def test_the_wheel_carries_every_file_of(part: str, wheel: Path) -> None:
    here = {
        f"effaced/_bundle/{path.relative_to(CHECKOUT)}"
        for path in (CHECKOUT / part).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert here
    with zipfile.ZipFile(wheel) as archive:
        assert here - set(archive.namelist()) == set()


def test_the_wheel_carries_types_the_examples_and_the_whole_client(wheel: Path) -> None:
    client = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "effaced/client").rglob("*.py")}
    assert client
    with zipfile.ZipFile(wheel) as archive:
        assert client | {"effaced/py.typed", "effaced/api/openapi/examples.json"} <= set(archive.namelist())


def test_the_wheel_serves_the_pages_about_the_api(served: str) -> None:
    with loopback.client(base_url=served, trust_env=False) as client:
        page = client.get("/api/v1/docs")
        parts = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
        assert {client.get(part).status_code for part in parts} == {200}
        example = client.get("/api/v1/openapi.json").json()["paths"]["/api/v1/requests"]["post"]
    assert "example" in example["requestBody"]["content"]["application/json"]


def test_the_wheels_own_package_is_imported(
    installed: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    found = run(
        [installed / "python", "-c", "import effaced; print(effaced.__file__)"], cwd=tmp_path, env=environment
    )
    assert installed.parent in Path(found.strip()).parents


def test_the_wheels_migrations_bring_up_a_database(
    installed: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    url = environment["EFFACED_DATABASE_URL"]
    code = "import sys; from effaced.migrate import upgrade; upgrade(sys.argv[1])"
    run([installed / "python", "-c", code, url], cwd=tmp_path, env=environment)
    assert (tmp_path / "effaced.db").stat().st_size > 0


def test_the_wheel_serves_the_sign_in_page_and_its_stylesheets(served: str) -> None:
    with loopback.client(base_url=served, trust_env=False) as client:
        page = client.get("/console/sign-in")
        sheets = re.findall(r'<link\s[^>]*rel="stylesheet"[^>]*href="([^"]+)"', page.text)
        answers = [client.get(sheet) for sheet in sheets]
    assert page.status_code == 200
    assert sheets
    assert {(each.status_code, each.headers["content-type"].split(";")[0]) for each in answers} == {
        (200, "text/css")
    }


def run(command: list[str | Path], *, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout
