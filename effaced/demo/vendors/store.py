"""What the fake vendors remember: records, and the answers they gave to idempotency keys."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock

from effaced.core import clock
from effaced.core.errors import Refused
from effaced.core.private_files import make_parents, private_file


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor: where its records are, and whether it deletes one, or all under a prefix."""

    name: str
    collection: str
    by_prefix: bool = False
    only_expires: bool = False
    corrects: tuple[str, ...] = ()


VENDORS = {
    vendor.name: vendor
    for vendor in (
        Vendor("payment", "v1/customers", corrects=("name", "email")),
        Vendor("crm", "contacts", corrects=("name", "contact")),
        Vendor("mailing", "subscribers", only_expires=True),
        Vendor("files", "objects", by_prefix=True),
    )
}

# References that always exist, for `effaced resolver check`. They stand for nobody.
CANARIES = {
    "payment": "cus_canary",
    "crm": "con_canary",
    "mailing": "canary@vendors.example",
    "files": "customers/canary/",
}

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    vendor TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, expires_at REAL,
    PRIMARY KEY (vendor, key));
CREATE TABLE IF NOT EXISTS answers (
    vendor TEXT NOT NULL, key TEXT NOT NULL, call TEXT NOT NULL, status INTEGER NOT NULL,
    PRIMARY KEY (vendor, key));
"""


class Store:
    """All vendors' records, in memory or in a SQLite file that outlives the process."""

    def __init__(self, path: Path | None = None) -> None:
        if path is not None:
            make_parents(path)
            private_file(path)
        self._lock = RLock()
        self._db = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        self._db.executescript(_SCHEMA)
        self.is_new = self._db.execute("SELECT count(*) FROM records").fetchone()[0] == 0
        for name, canary in CANARIES.items():
            key = f"{canary}hello.txt" if VENDORS[name].by_prefix else canary
            self.put(name, {key: {"note": "looked for by `effaced resolver check`"}})

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def put(self, vendor: str, records: Mapping[str, Mapping[str, object]]) -> None:
        """Add records; one that is there already stays as it is."""
        require_vendor(vendor)
        rows = [(vendor, key, json.dumps(body)) for key, body in records.items()]
        with self._lock, self._db:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR IGNORE INTO records (vendor, key, body) VALUES (?, ?, ?)", rows)

    def find(self, vendor: str, key: str) -> dict[str, dict[str, object]]:
        """The records that a reference denotes: one, or all under a prefix. Expired records are left out."""
        if VENDORS[vendor].by_prefix:
            return self._select(vendor, "substr(key, 1, length(?)) = ?", key, key)
        return self._select(vendor, "key = ?", key)

    def all(self, vendor: str) -> dict[str, dict[str, object]]:
        """Everything a vendor holds about people, which the canary is not."""
        require_vendor(vendor)
        found = self._select(vendor, "1")
        return {key: body for key, body in found.items() if not key.startswith(CANARIES[vendor])}

    def delete(self, vendor: str, keys: list[str]) -> None:
        with self._lock:
            self._db.executemany(
                "DELETE FROM records WHERE vendor = ? AND key = ?", [(vendor, key) for key in keys]
            )

    def correct(self, vendor: str, key: str, values: Mapping[str, object]) -> None:
        """Write these values into a record; what they hold below goes into what the record has there."""
        with self._lock:
            body = self._select(vendor, "key = ?", key)[key]
            for name, value in values.items():
                old = body.get(name)
                both = isinstance(old, dict) and isinstance(value, dict)
                body[name] = {**old, **value} if both else value  # type: ignore[dict-item]
            self._db.execute(
                "UPDATE records SET body = ? WHERE vendor = ? AND key = ?", (json.dumps(body), vendor, key)
            )

    def expire(self, vendor: str, keys: list[str], after: timedelta) -> datetime:
        """Let records go later. Asking again does not postpone it."""
        at = (clock.now() + after).timestamp()
        with self._lock:
            for key in keys:
                self._db.execute(
                    "UPDATE records SET expires_at = coalesce(expires_at, ?) WHERE vendor = ? AND key = ?",
                    (at, vendor, key),
                )
            row = self._db.execute(
                "SELECT max(expires_at) FROM records WHERE vendor = ? AND key = ?", (vendor, keys[-1])
            ).fetchone()
        return datetime.fromtimestamp(row[0], UTC)

    def answer_to(self, vendor: str, key: str) -> tuple[str, int] | None:
        """The call an idempotency key was first used for, and the status it got."""
        with self._lock:
            row: tuple[str, int] | None = self._db.execute(
                "SELECT call, status FROM answers WHERE vendor = ? AND key = ?", (vendor, key)
            ).fetchone()
        return row

    def remember(self, vendor: str, key: str, call: str, status: int) -> None:
        with self._lock:
            self._db.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", (vendor, key, call, status))

    def _select(self, vendor: str, condition: str, *values: str) -> dict[str, dict[str, object]]:
        with self._lock:
            self._db.execute("DELETE FROM records WHERE expires_at <= ?", (clock.now().timestamp(),))
            rows = self._db.execute(
                f"SELECT key, body FROM records WHERE vendor = ? AND {condition} ORDER BY key",  # noqa: S608
                (vendor, *values),
            )
            return {key: json.loads(body) for key, body in rows}


def require_vendor(vendor: str) -> Vendor:
    """The vendor of that name, or a refusal that says which there are."""
    if vendor not in VENDORS:
        raise Refused(f"vendor: there is no '{vendor}'; allowed: {', '.join(VENDORS)}")
    return VENDORS[vendor]
