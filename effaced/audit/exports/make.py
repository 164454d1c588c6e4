"""Making exports: claim, read the trail in one snapshot, write the file in sealed chunks, record it, done.

The snapshot is on one connection, each chunk is a short transaction on another: nothing is locked meanwhile,
and memory holds a batch of events and a chunk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from sqlalchemy import insert
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.export import Lines
from effaced.audit.exports.claim import (
    MOST_ATTEMPTS,
    Claimed,
    LostClaim,
    claim,
    is_due,
    record_failure,
    record_progress,
    record_ready,
    release,
)
from effaced.audit.exports.read import CHUNK_BYTES, seal_chunk
from effaced.audit.exports.remove import delete_superseded
from effaced.audit.read import AuditFilter
from effaced.audit.tables import AuditExportChunk
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.core.errors import SchemaMismatch
from effaced.core.log import get_logger

FilterOf = Callable[[Session, Claimed], AuditFilter]
"""Which events the one who asked may see, in the snapshot that the events come from."""
_log = get_logger(__name__)


class _Stopped(Exception):
    """This process is to end."""


class ExportMaker:
    """Makes exports. Any number may run at once."""

    def __init__(self, database: Database, keyring: Keyring, filter_of: FilterOf) -> None:
        self._db, self._keyring, self._filter_of = database, keyring, filter_of
        self._stopping = False

    def stop(self) -> None:
        """Claim nothing more, and leave what is being made to others."""
        self._stopping = True

    def is_due(self) -> bool:
        with self._db.read() as session:
            return is_due(session)

    def run(self) -> int:
        """Make what is due. Returns how many files are ready."""
        made = 0
        while not self._stopping and (claimed := self._claim()):
            made += self._try(claimed)
        return made

    def _claim(self) -> Claimed | None:
        with self._db.begin() as session:
            return claim(session)

    def _try(self, claimed: Claimed) -> bool:
        """Whether it is ready now. What fails is tried again later, and holds up no other."""
        try:
            if claimed.attempts > MOST_ATTEMPTS:
                # Each earlier attempt has ended its process: nobody was left to say so.
                self._record(record_failure, claimed, "interrupted")
                return False
            self._make(claimed)
        except SchemaMismatch:
            raise
        except _Stopped:
            self._record(release, claimed)
        except LostClaim:
            _log.warning("export_superseded", export=str(claimed.id))
        except Exception as error:
            _log.error("export_failed", export=str(claimed.id), error=type(error).__name__, exc_info=True)
            self._record(record_failure, claimed, type(error).__name__)
        else:
            return True
        return False

    def _make(self, claimed: Claimed) -> None:
        while delete_superseded(self._db, claimed.id, claimed.token):
            pass
        digest, size, number = hashlib.sha256(), 0, 0
        with self._db.snapshot() as session:
            lines = Lines(session, self._filter_of(session, claimed), claimed.format)
            total = lines.total()
            for chunk in _cut(lines):
                if self._stopping:
                    raise _Stopped
                digest.update(chunk)
                size += len(chunk)
                self._store(claimed, chunk, number, total=total, events=lines.events, size=size)
                number += 1
        with self._db.begin() as session:
            # What can be fetched is in the trail: both commit together.
            record_ready(
                session,
                claimed,
                digest.hexdigest(),
                total=total,
                events=lines.events,
                size=size,
                chunks=number,
            )
            append_one(session, lines.exported(claimed.id), actor=claimed.actor_of_export)
        _log.info("export_ready", export=str(claimed.id), events=lines.events, bytes=size)

    def _store(self, claimed: Claimed, chunk: bytes, number: int, **progress: int) -> None:
        sealed = seal_chunk(self._keyring, chunk, claimed.id, claimed.token, number)
        with self._db.begin() as session:
            record_progress(session, claimed, **progress)
            session.execute(
                insert(AuditExportChunk).values(
                    export_id=claimed.id, token=claimed.token, number=number, sealed=sealed
                )
            )

    def _record(self, write: Callable[..., None], *details: object) -> None:
        try:
            with self._db.begin() as session:
                write(session, *details)
        except LostClaim:
            pass
        except Exception as error:  # the lease will end
            _log.error("export_not_released", error=type(error).__name__)


def _cut(pieces: Iterable[str]) -> Iterator[bytes]:
    """The same text in chunks of one size; the last one has the rest."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece.encode()
        while len(buffer) >= CHUNK_BYTES:
            yield bytes(buffer[:CHUNK_BYTES])
            del buffer[:CHUNK_BYTES]
    if buffer:
        yield bytes(buffer)
