"""Reading resolvers.yaml: which systems there are and how each is called."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from effaced.core.config import Settings
from effaced.core.crypto import Keyring
from effaced.core.errors import ConfigurationError, Problem
from effaced.core.names import resolver_name_problem
from effaced.core.yaml.blocks import Reading
from effaced.core.yaml.file import Place, YamlFile, read_yaml
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.resolvers.kinds import PATHS, find_kind
from effaced.resolvers.protocols import Limits, Resolver, RetentionOnlyResolver
from effaced.resolvers.registry import Registered, ResolverRegistry, ref_problem
from effaced.resolvers.settings import Common, problems_of, validate


def load_registry(
    path: Path | str,
    environ: Mapping[str, str] = os.environ,
    *,
    refs: Collection[str] | None = None,
    keyring: Keyring | None = None,
) -> ResolverRegistry:
    """The registry a file describes. Refuses a wrong file with all of its problems at once.

    `refs` are the names of the data map's references, if known; a resolver that wants another is refused.
    Without the keyring a database whose map has keyed hashes can be listed, but not erased in.
    """
    return _Reading(read_yaml(Path(path)), environ, refs, keyring).registry()


def load_resolvers(settings: Settings, data_map: DataMap | None = None) -> ResolverRegistry:
    """The registry as the settings describe it: what one command shows, every process starts with.

    `data_map` spares reading it. While there is none yet, references are not compared with it.
    """
    if data_map is None and settings.datamap.exists():
        data_map = load_map(settings.datamap)
    refs = data_map.ref_kinds if data_map else None
    registry = load_registry(settings.resolvers, refs=refs, keyring=settings.keyring)
    registry.require_time(settings.lease)
    return registry


class _Reading(Reading):
    under = "resolvers"
    block_has = "`kind`, `ref` and more"

    def __init__(
        self,
        file: YamlFile,
        environ: Mapping[str, str],
        refs: Collection[str] | None,
        keyring: Keyring | None,
    ) -> None:
        super().__init__(file, environ)
        self.refs = refs
        self.keyring = keyring

    def registry(self) -> ResolverRegistry:
        registered = [self.resolver(name, block) for name, block in self.blocks()]
        self.require_no_problems()
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

    def resolver(self, name: str, block: dict[str, Any]) -> Registered | None:
        place: Place = ("resolvers", name)
        config = self.filled(place, block)
        common = self._common(place, config)
        own = {str(key): value for key, value in config.items() if key not in Common.model_fields}
        limits = common.limits() if common else Limits()
        resolver = self._make(place, str(config.get("kind", "")), name, own, limits)
        if common is None or resolver is None or resolver_name_problem(name):
            return None
        return Registered(
            name,
            common.ref,
            resolver,
            limits,
            common.kind,
            common.canary,
            after=tuple(common.after),
            fields=_fields(common, resolver),
            host=_host(resolver),
            configuration=_digest(common, own),
        )

    def _common(self, place: Place, config: dict[str, Any]) -> Common | None:
        shared = {key: value for key, value in config.items() if key in Common.model_fields}
        try:
            common = validate(Common, shared)
        except ConfigurationError as error:
            self.pass_on(place, error.problems)
            return None
        if self.refs is not None and (problem := ref_problem(common.ref, self.refs)):
            self.complain((*place, "ref"), problem)
        return common

    def _make(
        self, place: Place, kind: str, name: str, own: dict[str, Any], limits: Limits
    ) -> Resolver | RetentionOnlyResolver | None:
        if not kind:
            return None
        try:
            factory = find_kind(kind, self.keyring)
        except ConfigurationError as error:
            self.complain((*place, "kind"), error.message)
            return None
        beside = self.file.path.parent
        own |= {key: str(beside / own[key]) for key in PATHS.get(kind, ()) if isinstance(own.get(key), str)}
        try:
            resolver: object = factory(name, own, limits)
        except ConfigurationError as error:
            self.pass_on(place, error.problems or [Problem("", error.message)])
        except ValidationError as error:
            self.pass_on(place, problems_of(error))
        except Exception as error:
            # Code of somebody else's; its message may quote a secret.
            self.complain(place, f"the kind '{kind}' could not make a resolver ({type(error).__name__})")
        else:
            if isinstance(resolver, Resolver | RetentionOnlyResolver):
                return resolver
            self.complain(place, f"the kind '{kind}' made something that is no resolver")
        return None


def _digest(common: Common, own: Mapping[str, Any]) -> str:
    """Changes with everything that decides which calls are made; limits and order are left out.

    Of a file that the block names, its content counts, not where it is.
    """
    files = PATHS.get(common.kind, frozenset())
    parts = {key: Path(value).read_text() if key in files else value for key, value in own.items()}
    parts |= {"kind": common.kind, "ref": common.ref}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _host(resolver: object) -> str | None:
    host = getattr(resolver, "host", None)
    return host if isinstance(host, str) and host else None


def _fields(common: Common, resolver: object) -> frozenset[str] | None:
    """The fields that the system holds: those in `holds` and those it can correct; None for any.

    A system that holds a field it can't correct is called all the same, so that the gap fails loudly.
    """
    can: frozenset[str] | None = getattr(resolver, "fields", None)
    return can if common.holds is None else frozenset(common.holds) | (can or frozenset())
