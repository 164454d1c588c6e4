"""Redis as the guide has it: a user who may do only what effaced does, and TLS with a CA of one's own."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest
from company_house import company
from receivers import make_certificate
from redis import Redis
from redis.exceptions import NoPermissionError, RedisError

from effaced.breakers.stores.redis import PREFIX
from effaced.core.servers import Valkey
from effaced.worker.bell import connect

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy-a-fleet.md"
QUICK = {"lease_seconds": 11, "backoff_seconds": 0.2, "backoff_cap_seconds": 1}
PASSWORD = "a-secret"


def rules_in_the_guide() -> list[str]:
    found = re.search(r"^user effaced (.+?)\n\n", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert found
    return found[1].replace("\\\n", " ").replace(">THE-PASSWORD", f">{PASSWORD}").split()


@pytest.fixture
def admin(own_valkey: Valkey) -> Iterator[Redis]:
    """A connection that may do everything, made before nobody may any more without a password."""
    with closing(Redis.from_url(own_valkey.url, single_connection_client=True)) as client:
        client.execute_command("ACL", "SETUSER", "effaced", *rules_in_the_guide())
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">another-secret")
        client.execute_command("ACL", "LOG", "RESET")
        yield client


@pytest.fixture
def restricted_url(admin: Redis, own_valkey: Valkey) -> str:
    return own_valkey.url.replace("unix://", f"unix://effaced:{PASSWORD}@")


def test_a_fleet_needs_no_more_than_the_guide_allows(
    migrated_sqlite_url: str, admin: Redis, restricted_url: str, tmp_path: Path
) -> None:
    """Web, worker, scheduler, doorbell and breakers, with a vendor that fails so a breaker is written."""
    with company(migrated_sqlite_url, restricted_url, tmp_path, breaker_store="redis", **QUICK) as shop:
        shop.start_web()
        processes = [shop.start("worker"), shop.start("scheduler")]
        shop.vendors.fault("payment", "flaky", every=3)
        for person in shop.people[:2]:
            assert shop.post(person).status_code == 201
        shop.eventually(lambda: shop.all_completed(2), "the requests to be completed")
        assert [process.poll() for process in processes] == [None, None]
    assert list(admin.scan_iter(match=PREFIX + "*")), "no breaker was written"
    assert admin.execute_command("ACL", "LOG") == [], "something was refused"
    assert not any("NoPermission" in path.read_text() for path in tmp_path.glob("*.log"))


@pytest.mark.parametrize(
    "command",
    ["FLUSHALL", "CONFIG GET *", "KEYS *", "GET other", "SET other 1", "ACL LIST",
     "PUBLISH rq:pubsub:x stop", "HGETALL rq:job:x"],
)  # fmt: skip
def test_the_user_of_the_guide_may_do_nothing_else(restricted_url: str, command: str) -> None:
    with closing(connect(restricted_url)) as client, pytest.raises(NoPermissionError):
        client.execute_command(*command.split())


@contextmanager
def behind_tls(server: Valkey, certificate: Path) -> Iterator[int]:
    """A port that speaks TLS and passes on to the server, which is built without."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def pump(source: socket.socket, target: socket.socket) -> None:
            with suppress(OSError):
                while data := source.recv(65_536):
                    target.sendall(data)
            with suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)

        def accept() -> None:
            while True:
                try:
                    caller = context.wrap_socket(listener.accept()[0], server_side=True)
                except ssl.SSLError:
                    continue  # a caller who does not trust us
                except OSError:
                    return
                behind = socket.socket(socket.AF_UNIX)
                behind.connect(server.url.removeprefix("unix://"))
                for pair in ((caller, behind), (behind, caller)):
                    Thread(target=pump, args=pair, daemon=True).start()
                    stack.callback(pair[0].close)

        thread = Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_worker_speaks_tls_to_a_redis_whose_ca_it_is_given(
    migrated_sqlite_url: str, own_valkey: Valkey, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path / "redis.pem")
    with behind_tls(own_valkey, certificate) as port:
        url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={certificate}"
        with company(migrated_sqlite_url, url, tmp_path, breaker_store="redis", **QUICK) as shop:
            shop.start_web()
            shop.start("worker")
            assert shop.post(shop.people[0]).status_code == 201
            shop.eventually(lambda: shop.all_completed(1), "the request to be completed")


def test_a_redis_whose_certificate_nobody_vouches_for_is_not_spoken_to(
    own_valkey: Valkey, tmp_path: Path
) -> None:
    with behind_tls(own_valkey, make_certificate(tmp_path / "redis.pem")) as port:
        for url in (f"rediss://127.0.0.1:{port}/0", f"redis://127.0.0.1:{port}/0"):
            with closing(connect(url, answer_within=10)) as client, pytest.raises(RedisError):
                client.ping()
