"""Which functions of effaced a process has called: every one once, as a line in a file.

A process writes them as they are called, so nothing is missing of one that is killed. Its forks do the same.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import FrameType

import effaced

# A process that finds this in its environment records into the file that it names.
VARIABLE = "TRACE_CALLS_INTO"
_PACKAGE = f"{Path(effaced.__file__).parent}/"


def record_calls(path: str) -> None:
    """From now on, in every thread. A function is named by its module and its qualified name."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    seen: set[int] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and id(code) not in seen:
            seen.add(id(code))
            if code.co_filename.startswith(_PACKAGE):
                os.write(file, f"{frame.f_globals['__name__']}:{code.co_qualname}\n".encode())

    threading.setprofile(note)
    sys.setprofile(note)


def calls(path: Path) -> set[str]:
    """What has been recorded until now."""
    return set(path.read_text().splitlines()) if path.exists() else set()
