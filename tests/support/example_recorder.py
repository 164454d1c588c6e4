"""Calls operations of the API and keeps what was sent and answered, as examples for the document.

What differs from run to run is replaced by something made up: the same thing by the same, the same in every
run. So the examples fit together, and change only when the API does.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import count
from typing import Any

from flask import Flask

from effaced.api.catalogue import OPERATIONS
from effaced.core.clock import ManualClock

Json = dict[str, Any]
_BY_ID = {each.id: each for each in OPERATIONS}
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"


def _made_up_id(seed: str) -> str:
    digest = hashlib.sha256(f"id {seed}".encode()).hexdigest()
    return f"019cb0a5-6d6c-7{digest[:3]}-9{digest[3:6]}-{digest[6:18]}"


def _made_up_ref(seed: str) -> str:
    letters = [_ALPHABET[byte % len(_ALPHABET)] for byte in hashlib.sha256(seed.encode()).digest()]
    return f"ER-{''.join(letters[:4])}-{''.join(letters[4:8])}"


def _hex(length: int) -> Callable[[str], str]:
    return lambda seed: hashlib.sha256(f"hex {seed}".encode()).hexdigest()[:length]


# In this order: what a pattern has replaced is left alone by those after it.
_PATTERNS: tuple[tuple[str, re.Pattern[str], Callable[[str], str]], ...] = (
    ("address", re.compile(r"http://127\.0\.0\.1:\d+"), lambda _: "https://shop.example"),
    ("id", re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), _made_up_id),
    ("ref", re.compile(r"\bER-[0-9A-Z]{4}-[0-9A-Z]{4}\b"), _made_up_ref),
    ("token", re.compile(r"\beff_[a-z2-7]{8}_[a-z2-7]{32}\b"), lambda _: "eff_kq3vx7ab_…"),
    ("prefix", re.compile(r"\beff_[a-z2-7]{8}\b"), lambda _: "eff_kq3vx7ab"),
    ("secret", re.compile(r"\bwhsec_[A-Za-z0-9+/]{20,}={0,2}"), lambda _: "whsec_…"),
    ("hash", re.compile(r"\b[0-9a-f]{64}\b"), _hex(64)),
    ("trace", re.compile(r"\b[0-9a-f]{32}\b"), _hex(32)),
)
# Fields whose values are measured or sealed, and what they are in the examples.
_CURSOR = "W1sidCIsIjIwMjYtMDQtMDIi…"
_FIELDS: dict[str, object] = {"latency_ms": 81, "ms": 81, "next": _CURSOR, "after": _CURSOR}


class Recorder:
    """One scenario: its calls, and the examples they give. The first call of an operation is its example."""

    def __init__(self, app: Flask, scenario: str, time: ManualClock) -> None:
        self._app, self._scenario, self._time = app, scenario, time
        self.examples: dict[str, Json] = {}
        self.typed: set[str] = set()
        """What people typed, and what is erased with its request."""
        self._calls = count()
        self._seen: dict[str, dict[str, str]] = defaultdict(dict)

    def call(
        self,
        operation_id: str,
        token: str,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """Call the operation, which must succeed; the answer, as it was."""
        operation = _BY_ID[operation_id]
        self._note_typed(body)
        self._time.advance(timedelta(seconds=7))
        answer = self._app.test_client().open(
            operation.path.format(**(path or {})),
            method=operation.method,
            query_string=dict(query or {}),
            json=body,
            headers={"Authorization": f"Bearer {token}", "Idempotency-Key": f"call-{next(self._calls)}"},
        )
        assert answer.status_code < 300, f"{operation_id}: {answer.status_code} {answer.text}"
        found = answer.get_json() if answer.is_json else answer.text or None
        example: Json = {"status": answer.status_code}
        for name, part in (("path", path), ("query", query), ("body", body), ("answer", found)):
            if part not in (None, {}):
                example[name] = self._stable(part)
        self.examples.setdefault(operation_id, example)
        return found

    def wait(self, time: timedelta) -> None:
        self._time.advance(time)

    def _note_typed(self, body: Any) -> None:
        if isinstance(body, dict):
            self.typed |= {body[name] for name in ("reason", "text") if isinstance(body.get(name), str)}
            self.typed |= set((body.get("metadata") or {}).values())

    def _stable(self, value: Any, field: str = "") -> Any:
        if isinstance(value, Mapping):
            return {self._text(str(name)): self._stable(part, str(name)) for name, part in value.items()}
        if isinstance(value, list):
            return [self._stable(each, field) for each in value]
        if value is not None and field in _FIELDS:
            return _FIELDS[field]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for kind, pattern, made_up in _PATTERNS:
            text = pattern.sub(lambda found, kind=kind, make=made_up: self._known(kind, found[0], make), text)
        return text

    def _known(self, kind: str, found: str, make: Callable[[str], str]) -> str:
        known = self._seen[kind]
        if found in known.values():
            return found
        if found not in known:
            known[found] = make(f"{self._scenario} {len(known)}")
        return known[found]
