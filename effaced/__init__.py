"""GDPR erasure orchestration. The library's interface is in `effaced.library`; `from effaced import Outbox`
finds it too, and only then loads it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def __getattr__(name: str) -> Any:
    # `from effaced import clock` asks here first. Were the library loaded for that, half of effaced would be
    # imported in the middle of one of its modules.
    ours = not name.startswith("_") and find_spec(f"effaced.{name}") is None
    library = import_module("effaced.library") if ours else None
    if name not in getattr(library, "__all__", ()):
        raise AttributeError(f"module 'effaced' has no attribute '{name}'")
    return getattr(library, name)
