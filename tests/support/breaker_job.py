"""A job that finds Redis away, has a vendor fail, and ends: run as a process with two URLs."""

from __future__ import annotations

import sys

from breaker_cast import FAILURE, NOON, registry

from effaced.breakers.open_store import connect, layered_store
from effaced.core import clock, log
from effaced.core.db import Database

if __name__ == "__main__":
    log.configure("error", "json")
    database = Database(sys.argv[1])
    with clock.pretend(NOON):
        calls = registry(layered_store(connect(sys.argv[2]), database), fail_max=2)
        calls.settle(calls.admit("crm", most=2), [FAILURE, FAILURE])
        sys.stdout.write(calls.current_state(resolver="crm").value)
