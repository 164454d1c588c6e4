"""Whatever effaced creates on disk is for its owner alone, whatever the umask says."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from effaced import migrate
from effaced.cli import up
from effaced.cli.datamap.common import write_out
from effaced.cli.supervise import Child
from effaced.core import private_files as private
from effaced.core import servers
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.servers.process import short_folder
from effaced.demo.running import write_running_file
from effaced.demo.vendors.store import Store
from effaced.runtime import Runtime


@pytest.fixture(autouse=True)
def permissive_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_paths(folder: Path) -> list[str]:
    """What others than the owner could read, write or enter."""
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if mode(path) & 0o077]


def test_a_sqlite_database_its_journals_and_its_folders(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'deep' / 'down' / 'effaced.db'}"
    migrate.upgrade(url)
    database = Database(url)
    with database.begin() as session:
        session.connection().exec_driver_sql("CREATE TABLE more (id integer)")
        made = {path.name for path in (tmp_path / "deep" / "down").iterdir()}
    assert {"effaced.db", "effaced.db-wal", "effaced.db-shm"} <= made
    assert open_paths(tmp_path) == []
    database.dispose()


def test_a_database_file_that_existed_stays_as_it_is_and_is_warned_of(tmp_path: Path) -> None:
    """It is the company's own database: who else uses it is theirs to say."""
    path = tmp_path / "shop.db"
    path.touch(mode=0o644)
    url = f"sqlite:///{path}"
    migrate.upgrade(url)
    assert mode(path) == 0o644
    (tmp_path / "map.yaml").write_text("version: 1\n")
    runtime = Runtime(Settings(database_url=url, keys=new_key(), datamap=tmp_path / "map.yaml"))  # type: ignore[arg-type]
    with capture_logs() as logs, pytest.raises(Exception, match="map"):
        runtime.require_ready()
    runtime.db.dispose()
    assert [each["event"] for each in logs] == ["database_file_open_to_others"]


def test_the_key_of_a_data_folder_also_one_that_was_open(tmp_path: Path) -> None:
    key = up._kept_key(tmp_path / "keys")
    assert mode(tmp_path / "keys") == 0o600
    (tmp_path / "keys").chmod(0o644)
    assert up._kept_key(tmp_path / "keys") == key
    assert mode(tmp_path / "keys") == 0o600


def test_a_folder_of_effaceds_own_also_one_that_was_open(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir(mode=0o755)
    private.private_folder(tmp_path / "var")
    private.private_folder(tmp_path / "other" / "logs")
    assert open_paths(tmp_path) == []


def test_logs_drafts_demo_data_and_what_tells_of_a_running_demo(tmp_path: Path) -> None:
    child = Child("web", [sys.executable, "-c", "pass"], tmp_path / "web.log", os.environ)
    child.start()
    assert child.process is not None
    child.process.wait(30)
    write_out(tmp_path / "draft.yaml", "version: 1\n")
    Store(tmp_path / "demo" / "vendors.db").close()
    write_running_file(tmp_path, "http://127.0.0.1:1", {"EFFACED_KEYS": "k"})
    assert {"web.log", "draft.yaml", "demo", "running.json"} <= {path.name for path in tmp_path.iterdir()}
    assert open_paths(tmp_path) == []


def test_an_export_and_a_database_made_by_a_command(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")}
    environ |= {"EFFACED_DATABASE_URL": f"sqlite:///{tmp_path}/var/effaced.db", "EFFACED_KEYS": new_key()}
    export = ["audit", "export", "--output", str(tmp_path / "trail.jsonl")]
    for arguments in (["migrate"], export, export):  # the second finds the event of the first
        command = [sys.executable, "-m", "effaced", *arguments]
        subprocess.run(command, env=environ, cwd=tmp_path, check=True, umask=0, capture_output=True)
    assert {"var", "trail.jsonl"} == {path.name for path in tmp_path.iterdir()}
    assert open_paths(tmp_path) == []


def test_the_folders_of_the_private_servers() -> None:
    for server in (
        servers.Valkey(directory=short_folder("effaced-test-", None)),
        servers.Postgres(),
    ):
        try:
            server.start()
            folder = server._folder
            assert folder is not None
            found = [each for each in open_paths(folder) if not each.startswith("wheel")]
            # PostgreSQL gives its socket to everybody and relies on its password and the folder around it.
            assert [each for each in found if not each.startswith(".s.PGSQL")] == []
            assert mode(folder) == 0o700
        finally:
            server.close()


def test_every_entry_point_of_the_command_line_closes_its_files() -> None:
    code = "import os, sys; sys.argv = ['effaced', '--version']\n"
    code += "from effaced.cli import main\ntry:\n    main()\nexcept SystemExit:\n    print(oct(os.umask(0)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, umask=0, check=True)
    assert done.stdout.splitlines()[-1] == "0o77"
