"""Reads breakers.yaml. The environment wins over the file, the command line over both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from effaced.breakers.model import BreakerRole
from effaced.breakers.policy import (
    DEFAULTS,
    HOSTS,
    RESOLVERS,
    ROLES,
    BreakerPolicies,
    BreakerPolicy,
    CallLimits,
    merge,
    with_lowercase_hosts,
)
from effaced.core.errors import ConfigurationError, Problem
from effaced.core.strict import suggest
from effaced.core.yaml.file import Place, YamlFile, read_yaml

_TOP = ("version", DEFAULTS, HOSTS, RESOLVERS)
ENVIRONMENT = "EFFACED_BREAKER_OVERRIDES"


def load_policies(
    path: Path | str | None = None,
    environment: str = "",
    overrides: Sequence[str] = (),
    limits: Mapping[str, CallLimits] | None = None,
) -> BreakerPolicies:
    """The policies of a file (or the built-in ones), changed by `defaults.fail_max=3, resolvers.crm...`.

    `limits` are the resolvers' own, which the policies have to fit.
    """
    file = read_yaml(Path(path)) if path is not None else None
    tree = with_lowercase_hosts(_checked(file)) if file is not None else {}
    for source, given in ((ENVIRONMENT, environment.split(",")), ("", overrides)):
        for each in given:
            if each.strip():
                tree = merge(tree, _override(each.strip(), source))
    try:
        policies = BreakerPolicies(tree)
    except ConfigurationError as error:
        if file is None:
            raise
        problems = [file.problem(_place(each.where, file.data), each.message) for each in error.problems]
        raise ConfigurationError(f"{file.path} can't be used.", problems=problems) from None
    policies = policies.replace({}, limits)
    policies.require_fit()
    return policies


def parse_fields(texts: Sequence[str]) -> dict[str, Any]:
    """Fields of a policy given as `fail_max=3`, `rolling.enabled=true`."""
    fields: dict[str, Any] = {}
    for text in texts:
        name, value = _assignment(text, "", "FIELD=VALUE, such as fail_max=3")
        path = name.split(".")
        if not _is_key(path):
            raise _unknown(name, path)
        fields = merge(fields, _nested(path, _scalar(value, name)))
    return fields


def _checked(file: YamlFile) -> dict[str, Any]:
    """The file's blocks, each of which must be a mapping. Values are validated later."""
    data, problems = file.data, list[Problem]()
    if not isinstance(data, dict):
        problems.append(file.problem((), f"expected the keys `version: 1` and `{DEFAULTS}:`"))
        raise ConfigurationError(f"{file.path} can't be used.", problems=problems)
    for key in data:
        if key not in _TOP:
            problems.append(file.problem((str(key),), f"unknown key{suggest(str(key), _TOP)}"))
    if data.get("version") != 1 or data["version"] is True:
        problems.append(file.problem(("version",), "must be 1, the only known version"))
    tree = {str(key): value for key, value in data.items() if key in _TOP[1:] and value is not None}
    problems += [file.problem(place, message) for place, message in _misshapen(tree)]
    if problems:
        raise ConfigurationError(f"{file.path} can't be used.", problems=problems)
    return tree


def _misshapen(tree: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    blocks: dict[Place, Any] = {(DEFAULTS,): tree.get(DEFAULTS)}
    for scope in (HOSTS, RESOLVERS):
        named = tree.get(scope, {})
        if not isinstance(named, dict):
            yield (scope,), f"expected a mapping of names to {scope}"
            continue
        blocks |= {(scope, str(name)): block for name, block in named.items()}
    for place, block in blocks.items():
        if block is None:
            continue
        if not isinstance(block, dict):
            yield place, "expected a mapping of keys to values"
            continue
        roles = block.get(ROLES)
        if roles is None:
            continue
        if not isinstance(roles, dict):
            yield (*place, ROLES), "expected a mapping of roles to their keys"
            continue
        known = [role.value for role in BreakerRole]
        for role, own in roles.items():
            if role not in known:
                yield (*place, ROLES, str(role)), f"there is no such role{suggest(str(role), known)}"
            elif own is not None and not isinstance(own, dict):
                yield (*place, ROLES, str(role)), "expected a mapping of keys to values"


def _override(text: str, source: str) -> dict[str, Any]:
    """`resolvers.crm.reset_timeout_s=20` as a tree. A host's name may have dots in it."""
    name, value = _assignment(text, source, "scope.name.key=value, such as defaults.fail_max=3")
    where = _place_in(source, name)
    scope, _, rest = name.partition(".")
    if scope not in _TOP[1:]:
        raise _wrong(where, f"unknown key{suggest(scope, _TOP[1:])}")
    parts = rest.split(".")
    first = 0 if scope == DEFAULTS else 1
    for size in range(first, len(parts)):
        path = parts[size:]
        if _is_key(path):
            break
    else:
        raise _unknown(where, parts)
    block = _nested(path, _scalar(value, where))
    key = ".".join(parts[:size])
    return {scope: block} if scope == DEFAULTS else {scope: {key.lower() if scope == HOSTS else key: block}}


def _assignment(text: str, source: str, expected: str) -> tuple[str, str]:
    """Name and value of `name=value`."""
    name, found, value = (part.strip() for part in text.partition("="))
    if not found:
        raise _wrong(_place_in(source, name), f"expected {expected}")
    return name, value


def _place_in(source: str, name: str) -> str:
    return f"{source}: {name}" if source else name


def _nested(path: Sequence[str], value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    return dict(value)


def _is_key(path: list[str]) -> bool:
    if len(path) > 2 and path[0] == ROLES:
        return path[1] in list(BreakerRole) and _is_key(path[2:])
    return ".".join(path) in _keys(BreakerPolicy)


def _keys(model: type[BaseModel]) -> list[str]:
    found = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += [f"{name}.{each}" for each in inner.model_fields]
        else:
            found.append(name)
    return found


def _scalar(text: str, where: str) -> Any:
    """A number, a word, or a list with spaces between its items: `[429 500-599]`."""
    if text.startswith("[") and text.endswith("]"):
        return text[1:-1].replace(",", " ").split()
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = {}
    if isinstance(value, dict | list) or value is None:
        raise _wrong(where, "expected one value")
    return value


def _unknown(where: str, path: Sequence[str]) -> ConfigurationError:
    return _wrong(where, f"unknown key{suggest(path[-1], _keys(BreakerPolicy))}")


def _wrong(where: str, message: str) -> ConfigurationError:
    return ConfigurationError("A breaker override can't be used.", problems=[Problem(where, message)])


def _place(where: str, tree: dict[str, Any]) -> Place:
    """The place in the file of a dotted key. Host names contain dots, and may be in another case there."""
    scope, _, rest = where.partition(".")
    for name in map(str, tree.get(scope) or {}) if scope in (HOSTS, RESOLVERS) else ():
        key = name.lower() if scope == HOSTS else name
        if rest == key or rest.startswith(f"{key}."):
            return (scope, name, *(part for part in rest[len(name) + 1 :].split(".") if part))
    return tuple(part for part in where.split(".") if part)
