"""Files and folders for their owner alone: whatever effaced writes may hold personal data or a key."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FILE, _FOLDER = 0o600, 0o700
_OTHERS = 0o007


def keep_files_private() -> None:
    """At a process's start: what it and its children create from now on is for their owner alone."""
    os.umask(0o077)


def private_folder(path: Path) -> Path:
    """Make a folder that is effaced's own, and those above it that are missing. One that exists is closed."""
    _make_folders(path)
    path.chmod(_FOLDER)
    return path


def make_parents(path: Path) -> None:
    """Make the missing folders above a file. Those that exist are somebody's: they stay as they are."""
    _make_folders(path.parent)


def private_file(path: Path) -> Path:
    """Make a file that is effaced's own, empty if it is new. One that exists is closed to others."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, _FILE))
    path.chmod(_FILE)
    return path


def new_private_file(path: Path) -> None:
    """Make the file if it is missing. One that exists stays as it is: others may be meant to use it.

    Where it can't be made, whoever opens it next says why.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE))


def write_private(path: Path, content: str) -> None:
    private_file(path).write_text(content, encoding="utf-8")


def open_to_others(path: Path) -> bool:
    """Whether any user of this machine can read or write the file, as far as its own mode goes."""
    return path.is_file() and bool(path.stat().st_mode & _OTHERS)


def _make_folders(path: Path) -> None:
    # One by one: Path.mkdir gives its mode to the last folder only.
    for each in (*reversed(path.parents), path):
        if not each.is_dir():
            each.mkdir(mode=_FOLDER, exist_ok=True)
