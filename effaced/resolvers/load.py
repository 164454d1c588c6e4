"""Reading resolvers.yaml: which systems there are and how each is called."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from effaced.errors import ConfigurationError, Problem
from effaced.resolvers.environment import fill_in
from effaced.resolvers.kinds import find_kind
from effaced.resolvers.protocols import Limits, Resolver, RetentionOnlyResolver
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.resolvers.settings import Common, problems_of, suggest, validate
from effaced.resolvers.yamlfile import Place, YamlFile, read_yaml

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_TOP = {"version", "resolvers"}


def load_registry(
    path: Path | str, environ: Mapping[str, str] = os.environ, *, refs: Collection[str] | None = None
) -> ResolverRegistry:
    """The registry a file describes. Refuses a wrong file with all of its problems at once.

    `refs` are the names of the data map's references, if known; a resolver that wants another is refused.
    """
    return _Reading(read_yaml(Path(path)), environ, refs).registry()


class _Reading:
    """One reading of one file; gathers problems as it goes."""

    def __init__(self, file: YamlFile, environ: Mapping[str, str], refs: Collection[str] | None) -> None:
        self.file = file
        self.environ = environ
        self.refs = refs
        self.problems: list[Problem] = []
        self.unset: set[Place] = set()

    def registry(self) -> ResolverRegistry:
        registered = [self.resolver(name, block) for name, block in self.blocks()]
        if self.problems:
            raise ConfigurationError(f"{self.file.path} can't be used.", problems=self.problems)
        registry = ResolverRegistry(tuple(each for each in registered if each is not None))
        try:
            registry.require_order()
        except ConfigurationError as error:
            problems = [self._about_order(each) for each in error.problems]
            raise ConfigurationError(f"{self.file.path} can't be used.", problems=problems) from None
        return registry

    def _about_order(self, problem: Problem) -> Problem:
        name = problem.where.removeprefix("resolver ")
        return self.file.problem(("resolvers", name, "after"), problem.message.removeprefix("after: "))

    def complain(self, place: Place, message: str) -> None:
        # A value that could not be filled in is wrong already; what follows from that is noise.
        if not any(place[: len(unset)] == unset for unset in self.unset):
            self.problems.append(self.file.problem(place, message))

    def blocks(self) -> list[tuple[str, dict[str, Any]]]:
        data = self.file.data
        if not isinstance(data, dict):
            self.complain((), "expected the keys `version: 1` and `resolvers:`")
            return []
        for key in data:
            if key not in _TOP:
                self.complain((str(key),), f"unknown key{suggest(str(key), _TOP)}")
        if data.get("version") != 1 or data["version"] is True:
            self.complain(("version",), "expected 1, the only version there is")
        blocks = data.get("resolvers")
        if not isinstance(blocks, dict):
            self.complain(("resolvers",), "expected a mapping of names to resolvers ({} for none)")
            return []
        for name, block in blocks.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                self.complain(
                    ("resolvers", str(name)),
                    "a name has small letters, digits, - and _, starts with a letter and is at most 63 long",
                )
            if not isinstance(block, dict):
                self.complain(("resolvers", str(name)), "expected a mapping with `kind`, `ref` and more")
        return [(str(name), block) for name, block in blocks.items() if isinstance(block, dict)]

    def resolver(self, name: str, block: dict[str, Any]) -> Registered | None:
        place: Place = ("resolvers", name)
        config = fill_in(block, self.environ, self._note_unset, place)
        common = self._common(place, config)
        own = {str(key): value for key, value in config.items() if key not in Common.model_fields}
        limits = common.limits() if common else Limits()
        resolver = self._make(place, str(config.get("kind", "")), name, own, limits)
        if common is None or resolver is None:
            return None
        return Registered(
            name,
            common.ref,
            resolver,
            limits,
            common.kind,
            common.canary,
            after=tuple(common.after),
            fields=getattr(resolver, "fields", None),
        )

    def _note_unset(self, place: Place, message: str) -> None:
        self.complain(place, message)
        self.unset.add(place)

    def _common(self, place: Place, config: dict[str, Any]) -> Common | None:
        shared = {key: value for key, value in config.items() if key in Common.model_fields}
        try:
            common = validate(Common, shared)
        except ConfigurationError as error:
            self._pass_on(place, error.problems)
            return None
        if self.refs is not None and common.ref not in self.refs:
            self.complain(
                (*place, "ref"), f"the data map has no such reference{suggest(common.ref, self.refs)}"
            )
        return common

    def _make(
        self, place: Place, kind: str, name: str, own: dict[str, Any], limits: Limits
    ) -> Resolver | RetentionOnlyResolver | None:
        if not kind:
            return None
        try:
            factory = find_kind(kind)
        except ConfigurationError as error:
            self.complain((*place, "kind"), error.message)
            return None
        try:
            resolver: object = factory(name, own, limits)
        except ConfigurationError as error:
            self._pass_on(place, error.problems or [Problem("", error.message)])
        except ValidationError as error:
            self._pass_on(place, problems_of(error))
        except Exception as error:
            # Code of somebody else's; its message may quote a secret.
            self.complain(place, f"the kind '{kind}' could not make a resolver ({type(error).__name__})")
        else:
            if isinstance(resolver, Resolver | RetentionOnlyResolver):
                return resolver
            self.complain(place, f"the kind '{kind}' made something that is no resolver")
        return None

    def _pass_on(self, place: Place, problems: Collection[Problem]) -> None:
        for each in problems:
            inner: Place = tuple(
                int(part) if part.isdigit() else part for part in each.where.split(".") if part
            )
            self.complain((*place, *inner), each.message)
