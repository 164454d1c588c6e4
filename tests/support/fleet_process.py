"""A process that forks workers on demand: run by fleet.py with its settings as JSON.

Everything is imported before the first fork, so that a worker is there at once and two hundred of them
can be killed in a minute. A worker drains until it is killed or its parent is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from datetime import timedelta
from typing import Any

from effaced.audit.sink import DatabaseAuditSink
from effaced.core import clock, log
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.requests.complete import complete_operations
from effaced.resolvers.http import from_config
from effaced.resolvers.protocols import Limits
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.retries.policy import BackoffPolicy
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner


def registry(settings: dict[str, Any]) -> ResolverRegistry:
    """Resolvers that call the recording server; the path tells it who calls."""
    block = {
        "base_url": f"{settings['server']}/{os.getpid()}",
        "erase": {"method": "DELETE", "path": "/{ref}"},
    }
    limits = Limits(
        timeout=timedelta(seconds=settings["timeout"]),
        concurrency=settings["concurrency"],
        rate_per_second=settings["rate"],
        idempotent=settings["idempotent"],
    )
    return ResolverRegistry(
        tuple(Registered(name, name, from_config(name, block, limits), limits) for name in settings["names"])
    )


def work(settings: dict[str, Any], parent: int) -> None:
    database = Database(settings["database"])
    outbox = Outbox(database.sessions, keyring=Keyring.parse(settings["keys"]))
    backoff = BackoffPolicy(
        base_delay=timedelta(seconds=0.2),
        max_delay=timedelta(seconds=1),
        lease=timedelta(seconds=settings["lease"]),
    )
    while os.getppid() == parent:
        runner = SagaRunner(
            registry(settings),
            outbox,
            DatabaseAuditSink(),
            max_attempts=50,
            crash_limit=settings["crash_limit"],
            backoff=backoff,
            on_operations_complete=complete_operations,
        )
        if not asyncio.run(runner.run_once()):
            time.sleep(0.05)


def main() -> None:
    settings = json.loads(sys.argv[1])
    log.configure("info", "json")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getpid()
    for clock_off in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.stdin.close()
            with clock.shift(timedelta(seconds=float(clock_off))):
                work(settings, parent)
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
