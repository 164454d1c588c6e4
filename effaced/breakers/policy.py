"""Breaker policies: defaults, then the host or resolver, each with its roles, then changes at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from effaced.breakers.model import (
    HOST,
    RESOLVER,
    BreakerRole,
    canonical_name,
    host_name,
    resolver_name,
    split_name,
)
from effaced.core.errors import ConfigurationError, Problem
from effaced.core.strict import Strict, validate

Tree = Mapping[str, Any]
Block = Mapping[str, Any]
Overrides = Mapping[str, Block]
DEFAULTS, HOSTS, RESOLVERS, ROLES = "defaults", "hosts", "resolvers", "roles"
_SCOPES = {HOST: HOSTS, RESOLVER: RESOLVERS}


def _statuses(value: Any) -> Any:
    """Single statuses and ranges: [408, 429, "500-599"]."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError("expected a list of statuses such as [429, 500-599]")
    found: set[int] = set()
    for each in value:
        first, _, last = str(each).partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise ValueError("expected statuses such as 429 or ranges such as 500-599")
        # Before the range is made: one to a trillion would fill the memory.
        if not all(len(number) == 3 and 100 <= int(number) <= 599 for number in (first, last or first)):
            raise ValueError("a status is between 100 and 599")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


Statuses = Annotated[frozenset[int], BeforeValidator(_statuses)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class Rolling(Strict):
    """Opens on a number of failures within a window, whatever succeeds in between."""

    enabled: bool = False
    window_s: Seconds = 30
    threshold_failures: int = Field(default=6, ge=2, le=1_000)
    cooldown_s: Seconds = 60


class Classify(Strict):
    """What a status counts as. 2xx is a success; a status in neither list is neutral."""

    failure_statuses: Statuses = frozenset({408, 429, *range(500, 600)})
    neutral_statuses: Statuses = frozenset()


class BreakerPolicy(Strict):
    """The policy of one breaker for one role."""

    fail_max: int = Field(default=5, ge=1, le=1_000)
    reset_timeout_s: Seconds = 60
    max_reset_timeout_s: Seconds = 900
    retry_after_cap_s: Seconds = 900
    success_threshold: int = Field(default=1, ge=1, le=100)
    trial_calls: int = Field(default=1, ge=1, le=100)
    stuck_timeout_s: Seconds = 300
    jitter_ms: int = Field(default=0, ge=0, le=60_000)
    rolling: Rolling = Rolling()
    classify: Classify = Classify()

    @model_validator(mode="after")
    def _require_waits_that_fit(self) -> BreakerPolicy:
        if self.reset_timeout_s > self.max_reset_timeout_s:
            raise ValueError("reset_timeout_s must be at most max_reset_timeout_s")
        return self

    def replace(self, **fields: Any) -> BreakerPolicy:
        """A copy with other values, which are validated."""
        return validate(BreakerPolicy, merge(self.model_dump(), fields))


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How a resolver's calls are limited elsewhere, which its breaker policy has to fit."""

    timeout: timedelta
    max_attempts: int


class BreakerPolicies:
    """All policies. `tree` has the blocks `defaults`, `hosts` and `resolvers`, each with `roles` within.

    `overrides` are fields changed at run time, by breaker or under `defaults`; they win over the block they
    change, roles included. `limits` are the call limits by resolver: a breaker opens before its resolver's
    attempts are used up.
    """

    def __init__(
        self,
        tree: Tree | None = None,
        overrides: Overrides | None = None,
        limits: Mapping[str, CallLimits] | None = None,
    ) -> None:
        self.tree: Tree = with_lowercase_hosts(tree or {})
        self._overrides = dict(overrides or {})
        self._limits = dict(limits or {})
        self._cache: dict[tuple[str, BreakerRole], BreakerPolicy] = {}
        self._require_valid()

    def for_resolver(self, name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        return self.named(resolver_name(name), role)

    def for_host(self, host: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        return self.named(host_name(host), role)

    def named(self, service_name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        """The policy of the breaker `resolver:crm` or `host:api.example`."""
        policy = self._cache.get((service_name, role))
        if policy is None:
            policy = self._cache[service_name, role] = self._limited_by_attempts(
                canonical_name(service_name), role
            )
        return policy

    def opens_at(self, service_name: str) -> int | None:
        """How many failures in a row open it; None where that depends on what the call is for."""
        limits = {self.named(service_name, role).fail_max for role in BreakerRole}
        return limits.pop() if len(limits) == 1 else None

    def replace(
        self, overrides: Overrides, limits: Mapping[str, CallLimits] | None = None
    ) -> BreakerPolicies:
        """A copy with more fields overridden: under `defaults`, `resolver:crm` or `host:api.example`.

        Breakers keep their state: only what they do next follows the new policy.
        """
        changed = dict(self._overrides)
        for name, fields in overrides.items():
            name = name if name == DEFAULTS else canonical_name(name)
            changed[name] = with_changes(changed.get(name) or {}, fields)
        return BreakerPolicies(self.tree, changed, limits or self._limits)

    def replaced_by(self, name: str, changes: Block) -> tuple[str, ...]:
        """What was changed at run time for a role and these changes end, such as `roles.erase.fail_max`."""
        before = self._overrides.get(name if name == DEFAULTS else canonical_name(name)) or {}
        left = dotted(_without_role_fields(before, _fields(changes)))
        return tuple(field for field in dotted(before) if field not in left)

    def require_fit(self, resolver: str | None = None) -> None:
        """Refuse a trial that would count as lost during its call, and a breaker that opens too late.

        With little to do, one entry makes all the calls: it must not be abandoned before the breaker opens.
        """
        stuck, late = list[Problem](), list[Problem]()
        for name in self._limits if resolver is None else self._limits.keys() & {resolver}:
            shortest, attempts = (
                2 * self._limits[name].timeout.total_seconds(),
                self._limits[name].max_attempts,
            )
            policies = [self.configured(resolver_name(name), role) for role in BreakerRole]
            if any(each.stuck_timeout_s < shortest for each in policies):
                stuck.append(Problem(f"{RESOLVERS}.{name}.stuck_timeout_s", f"must be over {shortest:g}"))
            if 1 < attempts <= policies[0].fail_max:
                late.append(Problem(f"{RESOLVERS}.{name}.fail_max", f"must be under its {attempts} attempts"))
        if stuck:
            message = "A trial call would count as lost while it is in progress."
            raise ConfigurationError(message, problems=stuck)
        if late:
            message = "A vendor that is down would have calls abandoned before its breaker opens."
            raise ConfigurationError(message, problems=late)

    def _limited_by_attempts(self, service_name: str, role: BreakerRole) -> BreakerPolicy:
        """The policy, with a lower `fail_max` if the resolver's attempts would be used up before it opens."""
        policy, limits = self.configured(service_name, role), self._limits.get(split_name(service_name)[1])
        if limits is None or not service_name.startswith(f"{RESOLVER}:"):
            return policy
        late = 1 < limits.max_attempts <= policy.fail_max
        return policy.replace(fail_max=limits.max_attempts - 1) if late else policy

    def configured(self, service_name: str, role: BreakerRole) -> BreakerPolicy:
        """The policy without regard to call limits."""
        return validate(BreakerPolicy, self._layered(canonical_name(service_name), role))

    def _layered(self, service_name: str, role: BreakerRole | None) -> dict[str, Any]:
        """The fields of one breaker: each block, then what the block says for the role."""
        scope, key = split_name(service_name)
        merged: dict[str, Any] = {}
        for block in (
            self.tree.get(DEFAULTS),
            self._overrides.get(DEFAULTS),
            (self.tree.get(_SCOPES[scope]) or {}).get(key),
            self._overrides.get(service_name),
        ):
            for layer in (_fields(block), _of_role(block, role)):
                merged = merge(merged, layer)
        return merged

    def _require_valid(self) -> None:
        """Refuse policies that are impossible, with all problems by dotted key."""
        blocks: dict[str, tuple[str, Block]] = {DEFAULTS: (DEFAULTS, self.tree.get(DEFAULTS) or {})}
        for scope, name_of in ((HOSTS, host_name), (RESOLVERS, resolver_name)):
            for key, block in (self.tree.get(scope) or {}).items():
                blocks[f"{scope}.{key}"] = name_of(key), block or {}
        for name, block in self._overrides.items():
            scope, key = split_name(name)
            where = DEFAULTS if name == DEFAULTS else f"{_SCOPES[scope]}.{key}"
            _, below = blocks.get(where, (name, {}))
            blocks[where] = name, merge(below, block)
        problems = [
            problem
            for where, (service_name, block) in blocks.items()
            for role in (None, *BreakerRole)
            for problem in self._problems(where, service_name, block, role)
        ]
        if problems:
            raise ConfigurationError("The breaker policies are invalid.", problems=_distinct(problems))

    def _problems(
        self, where: str, service_name: str, block: Block, role: BreakerRole | None
    ) -> list[Problem]:
        """What is wrong with the block's own fields, and whether they fit those of the levels below."""
        own = _fields(block) if role is None else _of_role(block, role)
        where = f"{where}.{ROLES}.{role.value}" if role and own else where
        beside = () if role else (ROLES,)
        wrong = [each for each in _invalid(own, beside) if each.where]
        wrong += [each for each in _invalid(self._layered(service_name, role)) if not each.where]
        return [replace(each, where=f"{where}.{each.where}".rstrip(".")) for each in wrong]


def with_lowercase_hosts(tree: Tree) -> Tree:
    """Host names are case-insensitive: blocks of one host in different case are merged."""
    hosts: dict[str, Any] = {}
    for name, block in (tree.get(HOSTS) or {}).items():
        hosts = merge(hosts, {str(name).lower(): block or {}})
    return {**tree, HOSTS: hosts} if hosts else tree


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings, key by key; where they differ, the value from `above`."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            value = merge(under, value)
        merged[name] = value
    return merged


def with_changes(before: Block, changes: Block) -> dict[str, Any]:
    """What was changed at run time, with later changes. A field changed for all roles is so from then on:
    what was changed of it for a role before ends."""
    return merge(_without_role_fields(before, _fields(changes)), changes)


def _without_role_fields(block: Block, fields: Block) -> dict[str, Any]:
    roles = {role: _without(own or {}, fields) for role, own in (block.get(ROLES) or {}).items()}
    left = {role: own for role, own in roles.items() if own}
    return _fields(block) | ({ROLES: left} if left else {})


def _without(block: Block, fields: Block) -> dict[str, Any]:
    """The block without these fields. Of a nested one, such as `rolling`, only its named fields go."""
    left: dict[str, Any] = {}
    for name, value in block.items():
        nested = isinstance(value, Mapping) and isinstance(fields.get(name), Mapping)
        if nested and (inner := _without(value, fields[name])):
            left[name] = inner
        elif name not in fields:
            left[name] = value
    return left


def dotted(block: Block, under: str = "") -> dict[str, Any]:
    """Nested fields by dotted name, such as `rolling.window_s`."""
    found: dict[str, Any] = {}
    for name, value in block.items():
        path = f"{under}{name}"
        found |= dotted(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return found


def _invalid(fields: Block, beside: tuple[str, ...] = ()) -> Sequence[Problem]:
    try:
        validate(BreakerPolicy, fields, beside=beside)
    except ConfigurationError as error:
        return error.problems
    return ()


def _fields(block: Block | None) -> dict[str, Any]:
    return {name: value for name, value in (block or {}).items() if name != ROLES}


def _of_role(block: Block | None, role: BreakerRole | None) -> Block:
    return (((block or {}).get(ROLES) or {}).get(role.value) if role else None) or {}


def _distinct(problems: list[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))
