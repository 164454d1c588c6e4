"""The policies in force for one system, field by field, each with where its value comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from effaced.breakers.model import HOST, BreakerRole, resolver_name, split_name
from effaced.breakers.policy import ROLES
from effaced.console.current import runtime
from effaced.console.times import length
from effaced.model import PolicyKind, PolicyScope
from effaced.retries.overrides import ALL, Override, Target, get_override, read_bodies
from effaced.retries.policy import status_ranges
from effaced.saga.rules import RuleBook, limits_of, own_changes

HERE, FOR_ALL = "changed here", "changed for all systems"
BELOW_ATTEMPTS = "lowered to open before attempts are used up"
_RATE = "rate_per_second"
_SETTINGS = ("max_attempts", "base_delay", "max_backoff_delay", "timeout")


@dataclass(frozen=True, slots=True)
class Line:
    """One field: what it means, its value in words, and who set it."""

    field: str
    words: str
    value: str
    source: str

    @property
    def changed(self) -> bool:
        return self.source.startswith(HERE)


RETRY_WORDS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "max_attempts": ("Attempts before it is abandoned", str),
    "backoff_strategy": ("Backoff strategy", str),
    "base_delay": ("Wait after the first attempt", length),
    "multiplier": ("Backoff multiplier", lambda value: f"{value:g}"),
    "max_backoff_delay": ("Longest wait", length),
    "timeout": ("Abandoned at the latest after", length),
    "jitter": ("Jitter", lambda value: "yes" if value else "no"),
    "retry_status_codes": ("Retried on", status_ranges),
    "retry_non_idempotent": ("Also if a call may be made twice", lambda value: "yes" if value else "no"),
}
_BREAKER_WORDS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "fail_max": ("Opens after failures in a row", str),
    "reset_timeout_s": ("Then stays open for", length),
    "max_reset_timeout_s": ("Stays open for at most", length),
    "success_threshold": ("Closes after successful trial calls", str),
    "trial_calls": ("Trial calls at a time", str),
    "stuck_timeout_s": ("A trial is lost after", length),
    "retry_after_cap_s": ("Respects Retry-After for at most", length),
    "jitter_ms": ("Wait varies by up to", lambda value: f"{value} ms"),
    "rolling": (
        "Also opens on failures in a window",
        lambda value: f"{value.threshold_failures} in {length(value.window_s)}" if value.enabled else "no",
    ),
}


def retry_target(name: str) -> Target:
    return Target(PolicyKind.RETRY, PolicyScope.RESOLVER, name)


def retry_lines(session: Session, name: str) -> list[Line]:
    """The retry policy as the runner reads it."""
    rules = RuleBook(runtime().policy, runtime().registry)
    policy = rules.policy(session, resolver=name)
    bodies = read_bodies(session, PolicyKind.RETRY, resolvers=[name])
    file = own_changes(limits_of(runtime().registry, name))
    layers: list[tuple[Mapping[str, Any], str]] = [
        (bodies.get((PolicyScope.RESOLVER, name), {}), HERE),
        (file, "resolvers.yaml"),
        (bodies.get((PolicyScope.GLOBAL, ALL), {}), FOR_ALL),
        (dict.fromkeys(_SETTINGS), "settings"),
    ]
    return [
        Line(field, words, format_value(getattr(policy, field)), _source(field, layers))
        for field, (words, format_value) in RETRY_WORDS.items()
    ]


def breaker_lines(session: Session, service_name: str) -> list[Line]:
    """The breaker's policy for erasures; other roles may differ in breakers.yaml."""
    # From the database, not as this process last heard it: somebody may just have changed it.
    policies = runtime().breaker_policies_in_force(session)
    policy = policies.named(service_name, BreakerRole.ERASE)
    configured = policies.configured(service_name, BreakerRole.ERASE)
    scope, key = split_name(service_name)
    mine = PolicyScope(scope)
    bodies = read_bodies(session, PolicyKind.BREAKER, resolvers=[key], hosts=[key])
    tree = runtime().breaker_policies.tree
    own = (tree.get(f"{scope}s") or {}).get(key) or {}
    blocks: list[tuple[Mapping[str, Any], str]] = [
        (bodies.get((mine, key), {}), HERE),
        (own, "breakers.yaml"),
        (bodies.get((PolicyScope.GLOBAL, ALL), {}), FOR_ALL),
        (tree.get("defaults") or {}, "breakers.yaml, for all"),
    ]
    layers = [layer for block, source in blocks for layer in _layers_of(block, source)]
    lines = [
        Line(
            field,
            words,
            format_value(getattr(policy, field)),
            BELOW_ATTEMPTS if field == "fail_max" and policy != configured else _source(field, layers),
        )
        for field, (words, format_value) in _BREAKER_WORDS.items()
    ]
    return lines if scope == HOST else [*lines, _rate_line(session, key)]


def _layers_of(block: Mapping[str, Any], source: str) -> list[tuple[Mapping[str, Any], str]]:
    """What a block says for erasures, which wins, and what it says for all roles."""
    for_erasures = (block.get(ROLES) or {}).get(BreakerRole.ERASE.value) or {}
    return [(for_erasures, f"{source}, for erasures"), (block, source)]


def _rate_line(session: Session, name: str) -> Line:
    """The rate limit in force for a resolver."""
    rate = runtime().rate_in_force(session, resolver_name(name))
    bodies = read_bodies(session, PolicyKind.RATE, resolvers=[name])
    layers: list[tuple[Mapping[str, Any], str]] = [
        (bodies.get((PolicyScope.RESOLVER, name), {}), HERE),
        (
            {} if limits_of(runtime().registry, name).rate_per_second is None else {_RATE: True},
            "resolvers.yaml",
        ),
        (bodies.get((PolicyScope.GLOBAL, ALL), {}), FOR_ALL),
    ]
    value = "no limit" if rate is None else f"{rate:g} a second"
    return Line(_RATE, "Calls at most", value, _source(_RATE, layers))


def override_of(session: Session, name: str) -> Override | None:
    return get_override(session, retry_target(name))


def breaker_name(name: str) -> str:
    return resolver_name(name)


def _source(field: str, layers: list[tuple[Mapping[str, Any], str]]) -> str:
    return next((source for layer, source in layers if field in layer), "default")
