"""Many hands on one breaker at the same instant: threads, or processes forked off this file as a script.

Each round prepares the breaker, lets all hands go at once, and notes what each of them saw.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from breaker_cast import API, CRM, NOON, Heard, Where, registry
from waiting import PATIENCE

from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.breakers.repository import CircuitBreakerStateRepository as Repository
from effaced.breakers.stores.base import BreakerStore
from effaced.core import log

Saw = dict[str, Any]
MAIL = "resolver:mail"
LONG_AGO = NOON - timedelta(days=30)


def prepare_open(store: BreakerStore, settings: Saw) -> None:
    """Open, and a trial is due."""
    for name in (CRM, API, MAIL):
        Repository(store).atomic_reset(name)
        Repository(store).update_state(name, "open", opened_at=LONG_AGO)


def prepare_half_open(store: BreakerStore, settings: Saw) -> None:
    Repository(store).atomic_reset(CRM)
    Repository(store).update_state(CRM, "half_open", half_open_request_count=settings["hands"])


def prepare_closed(store: BreakerStore, settings: Saw) -> None:
    for name in (CRM, API):
        Repository(store).atomic_reset(name)


def prepare_nothing(store: BreakerStore, settings: Saw) -> None:
    Repository(store).delete_state(CRM)


def try_trial(store: BreakerStore, settings: Saw, hand: int) -> Saw:
    heard = Heard()
    calls = registry(store, heard, trial_calls=settings["trial_calls"])
    admission = calls.admit("crm", "api.example", most=settings.get("most", 1))
    return {"granted": admission.granted, "moves": heard.moves}


def try_either(store: BreakerStore, settings: Saw, hand: int) -> Saw:
    """Two resolvers on one host, and the host lets one call through."""
    resolver = ("crm", "mail")[hand % 2]
    return {"resolver": resolver, "granted": registry(store).admit(resolver, "api.example").granted}


def succeed(store: BreakerStore, settings: Saw, hand: int) -> Saw:
    return {"did": Repository(store).record_success_with_close_check(CRM, settings["threshold"]).did_close}


def fail(store: BreakerStore, settings: Saw, hand: int) -> Saw:
    return {"did": Repository(store).record_failure_with_open_check(CRM, settings["threshold"]).did_open}


def fail_flush(store: BreakerStore, settings: Saw, hand: int) -> Saw:
    """Through the registry: a flush of failures of a host and a resolver together."""
    heard = Heard()
    calls = registry(store, heard, fail_max=settings["threshold"])
    admission = calls.admit("crm", "api.example", most=2)
    calls.settle(admission, [Outcome(OutcomeKind.FAILURE, 500)] * 2 if admission.granted else [])
    return {"moves": heard.moves}


def create(store: BreakerStore, settings: Saw, hand: int) -> Saw:
    return {"name": Repository(store).get_or_create(CRM).service_name}


SCENES: dict[str, tuple[Callable[[Repository, Saw], None], Callable[[Repository, Saw, int], Saw]]] = {
    "trial": (prepare_open, try_trial),
    "either": (prepare_open, try_either),
    "succeed": (prepare_half_open, succeed),
    "fail": (prepare_closed, fail),
    "fail_flush": (prepare_closed, fail_flush),
    "create": (prepare_nothing, create),
}


def race_threads(where: Where, scene: str, rounds: int, hands: int = 8, **settings: Any) -> list[list[Saw]]:
    """What each hand saw, round by round; all hands share one store, as in one process."""
    prepare, act = SCENES[scene]
    settings |= {"hands": hands}
    gate = threading.Barrier(hands)
    seen: list[list[Saw]] = []
    with where.opened() as store:
        for _ in range(rounds):
            prepare(store, settings)
            found: list[Saw] = []

            def go(hand: int, found: list[Saw] = found) -> None:
                gate.wait(PATIENCE)
                found.append(act(store, settings, hand))

            threads = [threading.Thread(target=go, args=(hand,)) for hand in range(hands)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            seen.append(found)
    return seen


class Processes:
    """The same with processes, which share nothing but the store."""

    def __init__(self) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def race(self, where: Where, scene: str, rounds: int, hands: int = 8, **settings: Any) -> list[list[Saw]]:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        settings |= {"hands": hands}
        order = {"where": asdict(where), "scene": scene, "rounds": rounds, "settings": settings}
        self._parent.stdin.write(json.dumps(order) + "\n")
        self._parent.stdin.flush()
        answer: list[list[Saw]] = json.loads(self._parent.stdout.readline())
        return answer

    def close(self) -> None:
        self._parent.kill()
        self._parent.communicate()


def main() -> None:
    log.configure("error", "json")
    for line in sys.stdin:
        order = json.loads(line)
        seen = fork_and_race(Where(**order["where"]), order["scene"], order["rounds"], order["settings"])
        sys.stdout.write(json.dumps(seen) + "\n")
        sys.stdout.flush()


def fork_and_race(where: Where, scene: str, rounds: int, settings: Saw) -> list[list[Saw]]:
    """The parent prepares each round; its children are forked before anything is opened."""
    prepare, act = SCENES[scene]
    hands, fork = settings["hands"], multiprocessing.get_context("fork")
    ready, gate, over = (fork.Barrier(hands + 1) for _ in range(3))
    answers = fork.SimpleQueue()

    def child(hand: int) -> None:
        with where.opened() as store:
            store.load_all()  # connected before the first shot
            for _ in range(rounds):
                ready.wait(PATIENCE)
                gate.wait(PATIENCE)
                answers.put(act(store, settings, hand))
                over.wait(PATIENCE)

    with ExitStack() as stack:
        children = [fork.Process(target=child, args=(hand,)) for hand in range(hands)]
        for each in children:
            each.start()
            stack.callback(each.join, PATIENCE)
        store = stack.enter_context(where.opened())
        seen = []
        for _ in range(rounds):
            ready.wait(PATIENCE)
            prepare(store, settings)
            gate.wait(PATIENCE)
            seen.append([answers.get() for _ in range(hands)])
            over.wait(PATIENCE)
    return seen


if __name__ == "__main__":
    main()
