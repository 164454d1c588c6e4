"""Which kinds of resolvers there are: the built-in ones, and those other distributions bring.

A distribution brings a kind with an entry point of the group `effaced.resolvers`. It names a callable
`(name, config, limits) -> resolver`, or a class that has such a `from_config`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from effaced.core.crypto import Keyring
from effaced.core.errors import ConfigurationError
from effaced.resolvers import http, manual, noop, sql
from effaced.resolvers.protocols import Limits, Resolver, RetentionOnlyResolver
from effaced.resolvers.settings import suggest

GROUP = "effaced.resolvers"
Factory = Callable[[str, dict[str, Any], Limits], Resolver | RetentionOnlyResolver]

_BUILT_IN: dict[str, Factory] = {
    "http": http.from_config,
    manual.KIND: manual.from_config,
    "noop": noop.from_config,
    sql.KIND: sql.from_config,
}
# Keys that name a file: it is looked for beside resolvers.yaml.
PATHS: dict[str, frozenset[str]] = {sql.KIND: frozenset({"map"})}


def find_kind(kind: str, keyring: Keyring | None = None) -> Factory:
    """What makes resolvers of that kind. A built-in kind can't be replaced from outside.

    The keyring is for the one kind that has a data map; nobody else's code gets to see it.
    """
    if kind == sql.KIND:
        return partial(sql.from_config, keyring=keyring)
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    found = entry_points(group=GROUP, name=kind)
    if not found:
        known = {*_BUILT_IN, *entry_points(group=GROUP).names}
        raise ConfigurationError(f"there is no kind '{kind}'{suggest(kind, known)}")
    if len({point.value for point in found}) > 1:
        brought_by = sorted({point.dist.name for point in found if point.dist})
        raise ConfigurationError(
            f"several distributions bring a kind '{kind}': {', '.join(brought_by)}; keep one"
        )
    try:
        loaded = next(iter(found)).load()
    except Exception as error:
        raise ConfigurationError(f"the kind '{kind}' can't be imported ({type(error).__name__})") from error
    factory: Factory = getattr(loaded, "from_config", loaded)
    if not callable(factory):
        raise ConfigurationError(f"the kind '{kind}' is neither callable nor has a from_config")
    return factory
