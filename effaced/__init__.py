"""GDPR erasure orchestration. The library's interface is in `effaced.library`; `from effaced import Outbox`
finds it too, and only then loads it.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    library = None if name.startswith("_") else import_module("effaced.library")
    if name not in getattr(library, "__all__", ()):
        raise AttributeError(f"module 'effaced' has no attribute '{name}'")
    return getattr(library, name)
