"""GDPR erasure orchestration. The library's interface is in `effaced.library`; `from effaced import Outbox`
finds it too, and only then loads it.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from warnings import warn

# Modules that the documentation used to name, and where they are now. Gone in the release after next.
MOVED = {
    "effaced.clients": "effaced.core.http_clients",
    "effaced.config": "effaced.core.config",
    "effaced.db": "effaced.core.db",
    "effaced.errors": "effaced.core.errors",
}


class _MovedModules(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        warn(
            f"{module.__name__} has moved: import from effaced.library, or from {new}.",
            DeprecationWarning,
            stacklevel=2,
        )
        sys.modules[module.__name__] = import_module(new)


sys.meta_path.append(_MovedModules())


def __getattr__(name: str) -> Any:
    # `from effaced import doorbell` asks here first. Were the library loaded for that, half of effaced would
    # be imported in the middle of one of its modules.
    ours = not name.startswith("_") and find_spec(f"effaced.{name}") is None
    library = import_module("effaced.library") if ours else None
    if name not in getattr(library, "__all__", ()):
        raise AttributeError(f"module 'effaced' has no attribute '{name}'")
    return getattr(library, name)
