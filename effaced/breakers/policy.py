"""When a breaker opens, how long it waits, what closes it: defaults, then host or resolver, then role."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from effaced.breakers.model import HOST, RESOLVER, BreakerRole, host_name, resolver_name, split_name
from effaced.core.errors import ConfigurationError, Problem
from effaced.core.strict import Strict, validate

Tree = Mapping[str, Any]
DEFAULTS, HOSTS, RESOLVERS, ROLES = "defaults", "hosts", "resolvers", "roles"
_SCOPES = {HOST: HOSTS, RESOLVER: RESOLVERS}


def _statuses(value: Any) -> Any:
    """Statuses one by one or as a range: [408, 429, "500-599"]."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError("expected a list of statuses such as [429, 500-599]")
    found: set[int] = set()
    for each in value:
        first, _, last = str(each).partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise ValueError("expected statuses such as 429 or ranges such as 500-599")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _are_statuses(value: frozenset[int]) -> frozenset[int]:
    if any(not 100 <= status <= 599 for status in value):
        raise ValueError("a status is between 100 and 599")
    return value


Statuses = Annotated[frozenset[int], BeforeValidator(_statuses), AfterValidator(_are_statuses)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class Rolling(Strict):
    """Opens on so many failures within a window, successes between them or not."""

    enabled: bool = False
    window_s: Seconds = 30
    threshold_failures: int = Field(default=6, ge=2, le=1_000)
    cooldown_s: Seconds = 60


class Classify(Strict):
    """What an answer's status says. 2xx is a success; neutral or in neither list, it says nothing."""

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
    def _waits_fit(self) -> BreakerPolicy:
        if self.reset_timeout_s > self.max_reset_timeout_s:
            raise ValueError("reset_timeout_s must be at most max_reset_timeout_s")
        return self

    def replace(self, **fields: Any) -> BreakerPolicy:
        """The same with other values, checked like any."""
        return validate(BreakerPolicy, merge(self.model_dump(), fields))


class BreakerPolicies:
    """All policies. `tree` has the blocks `defaults`, `hosts` and `resolvers`, each with `roles` within."""

    def __init__(self, tree: Tree | None = None) -> None:
        self.tree: Tree = _small_hosts(tree or {})
        self._made: dict[tuple[str, BreakerRole], BreakerPolicy] = {}
        require_usable(self.tree)

    def for_resolver(self, name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        return self.named(resolver_name(name), role)

    def for_host(self, host: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        return self.named(host_name(host), role)

    def named(self, service_name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        """The policy of the breaker `resolver:crm` or `host:api.example`."""
        made = self._made.get((service_name, role))
        if made is None:
            scope, key = split_name(service_name)
            made = validate(BreakerPolicy, _layered(self.tree, _SCOPES[scope], key, role))
            self._made[service_name, role] = made
        return made

    def replace(self, overrides: Mapping[str, Mapping[str, Any]]) -> BreakerPolicies:
        """The same with changed fields by scope: `defaults`, `resolver:crm`, `host:api.example`.

        Breakers keep their state: only what they do next goes by the new policy.
        """
        tree: Tree = self.tree
        for name, fields in overrides.items():
            tree = merge(tree, {DEFAULTS: fields} if name == DEFAULTS else _placed(name, fields))
        return BreakerPolicies(tree)

    def require_longer_than(self, timeouts: Mapping[str, timedelta]) -> None:
        """Refuse a stuck timeout within which a call and its read-back could still be under way."""
        problems = [
            Problem(f"{RESOLVERS}.{name}.stuck_timeout_s", f"must be over {2 * timeout.total_seconds():g}")
            for name, timeout in timeouts.items()
            for role in BreakerRole
            if self.for_resolver(name, role).stuck_timeout_s < 2 * timeout.total_seconds()
        ]
        if problems:
            said = "A trial call would count as lost while it is under way."
            raise ConfigurationError(said, problems=list(dict.fromkeys(problems)))


def _small_hosts(tree: Tree) -> Tree:
    """Hosts are told apart without regard to case."""
    hosts = tree.get(HOSTS) or {}
    return {**tree, HOSTS: {str(name).lower(): block for name, block in hosts.items()}} if hosts else tree


def _placed(service_name: str, fields: Mapping[str, Any]) -> Tree:
    scope, key = split_name(service_name)
    return {_SCOPES[scope]: {key: fields}}


def _layered(tree: Tree, scope: str, key: str, role: BreakerRole) -> dict[str, Any]:
    """Defaults, then the host's or resolver's own, then what each of the two says for the role."""
    blocks = [tree.get(DEFAULTS) or {}, (tree.get(scope) or {}).get(key) or {}]
    layers = [*blocks, *((block.get(ROLES) or {}).get(role.value) or {} for block in blocks)]
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = merge(merged, {name: value for name, value in layer.items() if name != ROLES})
    return merged


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both, key by key; where they differ, what is above."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            value = merge(under, value)
        merged[name] = value
    return merged


def require_usable(tree: Tree) -> None:
    """Refuse a tree with a policy that can't be, with all its problems by dotted key."""
    problems: list[Problem] = []
    blocks = {DEFAULTS: tree.get(DEFAULTS) or {}} | {
        f"{scope}.{name}": block or {}
        for scope in (HOSTS, RESOLVERS)
        for name, block in (tree.get(scope) or {}).items()
    }
    for where, block in blocks.items():
        scope, _, name = where.partition(".")
        roles = [None, *(role for role in BreakerRole if role.value in (block.get(ROLES) or {}))]
        for role in roles:
            problems += _problems(tree, where, scope, name, role)
    if problems:
        raise ConfigurationError("The breakers' policies are wrong.", problems=list(dict.fromkeys(problems)))


def _problems(tree: Tree, where: str, scope: str, name: str, role: BreakerRole | None) -> list[Problem]:
    block = (tree.get(DEFAULTS) if scope == DEFAULTS else (tree.get(scope) or {}).get(name)) or {}
    if role is None:
        own = {key: value for key, value in block.items() if key != ROLES}
        base = (tree.get(DEFAULTS) or {}) if scope != DEFAULTS else {}
        layered = merge({key: value for key, value in base.items() if key != ROLES}, own)
    else:
        own, where = block[ROLES][role.value] or {}, f"{where}.{ROLES}.{role.value}"
        layered = _layered(tree, HOSTS if scope == DEFAULTS else scope, name, role)
    try:
        validate(BreakerPolicy, own, beside=() if role else (ROLES,))
        validate(BreakerPolicy, layered)
    except ConfigurationError as error:
        return [Problem(f"{where}.{each.where}".rstrip("."), each.message) for each in error.problems]
    return []
