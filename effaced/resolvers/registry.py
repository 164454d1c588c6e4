"""Which resolvers there are, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from effaced.core.arguments import checked
from effaced.core.errors import ConfigurationError, Problem, ResolverError
from effaced.core.http_clients import require_time
from effaced.core.names import name_problem, raise_problem, resolver_name_problem
from effaced.core.order import find_circle
from effaced.core.strict import suggest
from effaced.resolvers.protocols import (
    Limits,
    RectifyingResolver,
    Resolver,
    ResumingResolver,
    RetentionOnlyResolver,
    VerifyingResolver,
)


@checked
@dataclass(frozen=True, slots=True)
class Registered:
    """A resolver with the reference it needs (a name in the data map's `refs:`) and its limits.

    `kind` is the word of resolvers.yaml that made it. `canary` is a reference that must always exist
    in the system; `effaced resolver check` looks for it. `after` names the resolvers that have to succeed
    before this one is called. `fields` are the categories of data the system holds; None means any. `host` is
    whom it calls, if that is one: systems on one host share its breaker. `configuration` is a digest of
    everything that decides which calls are made and what their answers mean; it may be made of secrets.
    """

    name: str
    ref: str
    resolver: Resolver | RetentionOnlyResolver
    limits: Limits = field(default_factory=Limits)
    kind: str = "python"
    canary: str | None = field(default=None, repr=False)
    after: tuple[str, ...] = ()
    fields: frozenset[str] | None = None
    host: str | None = None
    configuration: str = field(default="", repr=False)

    # What the resolver can do, looked at once: asking a protocol costs more than many a call.
    retention_only: bool = field(init=False)
    verifies: bool = field(init=False)
    rectifies: bool = field(init=False)
    resumes: bool = field(init=False)

    def __post_init__(self) -> None:
        raise_problem(resolver_name_problem(self.name))
        if self.host is not None:
            raise_problem(name_problem("A resolver's host", self.host))
        object.__setattr__(self, "retention_only", isinstance(self.resolver, RetentionOnlyResolver))
        object.__setattr__(self, "verifies", isinstance(self.resolver, VerifyingResolver))
        object.__setattr__(self, "rectifies", isinstance(self.resolver, RectifyingResolver))
        object.__setattr__(self, "resumes", isinstance(self.resolver, ResumingResolver))


def ref_problem(ref: str, known: Collection[str]) -> str | None:
    """What is wrong with a reference that the data map does not have; None if it has it."""
    return None if ref in known else f"the data map has no such reference under refs{suggest(ref, known)}"


class ResolverRegistry:
    """An explicit list: only registered systems are called."""

    @checked
    def __init__(self, registered: tuple[Registered, ...] = ()) -> None:
        self._by_name = {each.name: each for each in registered}
        if len(self._by_name) < len(registered):
            names = Counter(each.name for each in registered)
            twice = ", ".join(f"'{name}'" for name, number in names.items() if number > 1)
            raise ConfigurationError(f"Several resolvers are named {twice}.")

    @checked
    def register(self, entry: Registered) -> None:
        self._by_name[entry.name] = entry

    def get(self, name: str) -> Registered:
        """The resolver of that name; an unknown one is a permanent failure of the entry that asks."""
        try:
            return self._by_name[name]
        except KeyError:
            raise ResolverError(f"No resolver is named '{name}'.", code="unknown_resolver") from None

    def require_order(self) -> None:
        """Refuse `after:` that names nobody, or that runs in a circle: such entries would wait for ever."""
        problems = [
            Problem(f"resolver {each.name}", f"after: there is no resolver '{name}'")
            for each in self
            for name in each.after
            if name not in self
        ]
        if path := find_circle({each.name: each.after for each in self}):
            problems.append(Problem(f"resolver {path[0]}", f"after: a circle, {' -> '.join(path)}"))
        if problems:
            raise ConfigurationError("The order of the resolvers can't be kept:", problems=problems)

    def require_refs(self, known: Collection[str]) -> None:
        """Refuse a resolver whose reference the data map does not have: it would never be called."""
        problems = [
            Problem(f"resolver {each.name}", f"ref: {problem}")
            for each in self
            if (problem := ref_problem(each.ref, known))
        ]
        if problems:
            raise ConfigurationError("Resolvers don't fit the data map:", problems=problems)

    def require_time(self, lease: timedelta) -> None:
        """A call and its read-back must fit into the lease, or another runner takes the entry meanwhile."""
        require_time({f"resolver {each.name}": each.limits.timeout for each in self}, lease)

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._by_name.values())

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self._by_name)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[ResolverRegistry]:
        """Keep what the resolvers share (HTTP connections) open for the length of the block.

        A resolver that wants this is an async context manager itself.
        """
        async with AsyncExitStack() as stack:
            for each in self:
                if isinstance(each.resolver, AbstractAsyncContextManager):
                    await stack.enter_async_context(each.resolver)
            yield self


def split_by_reference(
    registry: ResolverRegistry, refs: Collection[str]
) -> tuple[list[Registered], list[Registered]]:
    """The systems that know a person with these references, and those that don't."""
    known = [each for each in registry if each.ref in refs]
    return known, [each for each in registry if each not in known]
