"""What `effaced up --demo` leaves in its folder while it runs, so that other commands find it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from effaced.core.config import PREFIX
from effaced.core.errors import Unavailable
from effaced.core.private_files import write_private

_FILE = "running.json"
_START = "Start one with `make run` (or `effaced up --demo`) in another terminal"


@dataclass(frozen=True, slots=True)
class Running:
    """A running demo: where its console is, and the environment of its processes."""

    console: str
    environ: dict[str, str]

    @property
    def vendors(self) -> str:
        return self.environ["EFFACED_DEMO_VENDORS"]


def write_running_file(folder: Path, console: str, environ: Mapping[str, str]) -> Path:
    """Write where the demo runs, readable by its owner alone: the demo's key is in it."""
    path = folder / _FILE
    own = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    write_private(path, json.dumps({"console": console, "environ": own}))
    return path


def find_running(data: Path) -> Running:
    """The demo that runs on this data folder."""
    path = data / "demo" / _FILE
    try:
        found = json.loads(path.read_text())
        return Running(found["console"], found["environ"])
    except FileNotFoundError:
        raise Unavailable(f"No demo runs on {data}. {_START}, or name its folder with --data.") from None
    except (ValueError, KeyError, TypeError):
        raise Unavailable(f"{path} can't be read. End the demo and start it again.") from None
