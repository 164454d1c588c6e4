"""A temporary file without a name: written completely, then read once.

It belongs to the process alone and is gone when it is closed or the process ends, however that ends, so
nothing has to be cleaned up at the next start.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import BoundedSemaphore

from effaced.core.errors import Unavailable
from effaced.core.log import get_logger

AT_ONCE = 3
"""How many a process has at the same time. Each occupies a thread and disk space until it was read."""
_PIECE = 65_536
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_slots = BoundedSemaphore(AT_ONCE)
_log = get_logger(__name__)


class Spool:
    """Iterating reads the file, piece by piece; the end, or `close`, frees it."""

    def __init__(self, folder: Path | None) -> None:
        self._holds_slot = _slots.acquire(blocking=False)
        if not self._holds_slot:
            raise Unavailable(f"{AT_ONCE} exports are under way. Try again when one of them has finished.")
        try:
            self._file = tempfile.TemporaryFile(dir=folder, prefix="effaced-export-")  # noqa: SIM115
        except OSError as error:
            self._free_slot()
            raise _unavailable(error) from None
        self.size = 0

    def write(self, pieces: Iterable[str]) -> None:
        """Write everything, or close and say why that is impossible."""
        try:
            for piece in pieces:
                self.size += self._file.write(piece.encode())
            self._file.seek(0)
        except OSError as error:
            self.close()
            raise _unavailable(error) from None
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[bytes]:
        try:
            while piece := self._file.read(_PIECE):
                yield piece
        finally:
            self.close()

    def close(self) -> None:
        try:
            self._file.close()
        except OSError:  # what could not be written before can't be written now either
            pass
        finally:
            self._free_slot()

    def __del__(self) -> None:
        # An answer that was never sent is closed by nobody else.
        if self._holds_slot:
            self.close()

    def _free_slot(self) -> None:
        if self._holds_slot:
            self._holds_slot = False
            _slots.release()


def _unavailable(error: OSError) -> Unavailable:
    _log.error("export_not_written", error=type(error).__name__, errno=error.errno)
    if error.errno in _FULL:
        return Unavailable(
            "The export can't be prepared: the disk for temporary files (EFFACED_SPOOL_DIR) is full."
        )
    return Unavailable("The export can't be prepared: temporary files (EFFACED_SPOOL_DIR) can't be written.")
