"""Files that tests compare with what they make: `make record` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

# Read at import: some tests remove all settings of effaced from the environment.
RECORD = os.environ.get("EFFACED_TEST_RECORD") == "1"


def assert_current(path: Path, content: str) -> None:
    """The file has this content, or is given it now."""
    if RECORD:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    current = path.read_text(encoding="utf-8") if path.exists() else None
    assert current == content, f"{path.name} is not current: `make record` writes it anew"
