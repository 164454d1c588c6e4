"""The standard streams of a command: read to their end, read by nobody any more, or closed from the start."""

from __future__ import annotations

import io
import os
import signal
import sys

CLOSED_PIPE = 128 + signal.SIGPIPE


def prepare_streams() -> None:
    """Have a command end quietly when its output is not read to the end, as in `effaced audit export | head`.

    Not by the default action of SIGPIPE: that would also end it when a database or Redis hangs up.
    """
    for descriptor in range(3):
        _open_if_closed(descriptor)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115
    old = sys.stdout
    if old is None or old is sys.__stdout__:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Output(1, "w", closefd=False)),
            encoding=old.encoding if old else None,
            errors=old.errors if old else None,
            line_buffering=old.line_buffering if old else False,
        )


class _Output(io.FileIO):
    """Ends the command when nobody reads any more. click and rich have exit codes of their own for that."""

    def write(self, data: object) -> int:
        """Write to the descriptor. A closed pipe ends the process with CLOSED_PIPE."""
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            # What is still buffered goes nowhere, or the interpreter would complain about it at its end.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            if isinstance(error, BrokenPipeError):
                raise SystemExit(CLOSED_PIPE) from None
            raise


def _open_if_closed(descriptor: int) -> None:
    """The next file to be opened, perhaps the database, would get the number, and then what is printed."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
