"""Systems as the API answers them: a fixed number of queries, however many there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from effaced.api.operations.call import Call
from effaced.api.resolvers import models
from effaced.breakers.model import resolver_name
from effaced.breakers.view import BreakerView, read_views
from effaced.model import PolicyKind, PolicyScope
from effaced.outbox.absences import Alarm
from effaced.outbox.due import oldest_due
from effaced.outbox.flow import ALL
from effaced.resolvers.protocols import Limits
from effaced.resolvers.read_backs import ReadBack
from effaced.retries.overrides import list_overrides, rate_in_force
from effaced.triage.health import Health, read_health
from effaced.triage.systems import Paused, System, abilities_of, breakers_of, current_pauses, systems


@dataclass(frozen=True, slots=True)
class _Known:
    """What is read for all systems at once, by name."""

    breakers: Mapping[str, BreakerView]
    health: Mapping[str, Health]
    due: Mapping[str, datetime]
    rates: Mapping[tuple[PolicyScope, str], float | None]
    everything: Paused | None


def show_resolvers(call: Call, name: str | None = None) -> list[models.Resolver]:
    """All systems, those that only the database still has last; or the one of this name."""
    runtime = call.runtime
    found = systems(call.session, runtime.registry, runtime.keyring)
    chosen = [each for each in found if name is None or each.name == name]
    if not chosen:
        return []
    known = _read(call, chosen)
    return [_show(each, known) for each in chosen]


def show_pause(call: Call, resolver: str) -> models.ResolverPauseState:
    """What holds now: its own pause, or that of all."""
    paused = current_pauses(call.session, call.keyring)
    found = paused.get(resolver) or paused.get(ALL)
    return models.ResolverPauseState(resolver=resolver, pause=_pause(found))


def _read(call: Call, chosen: list[System]) -> _Known:
    runtime, session = call.runtime, call.session
    called = {
        each.name: breakers_of(each.registered) for each in chosen if each.registered and not each.by_hand
    }
    names = sorted({name for each in called.values() for name in each})
    here = runtime.breakers.within(session)
    views = read_views(session, here, runtime.keyring, runtime.called, names) if names else []
    rows = {each.name: each.data for each in views}
    changed = list_overrides(session, PolicyKind.RATE)
    return _Known(
        breakers={each.name: each for each in views},
        health=read_health(session, called, rows) if called else {},
        due=oldest_due(session),
        rates={(each.target.scope, each.target.key): each.body.get("rate_per_second") for each in changed},
        everything=current_pauses(session, call.keyring).get(ALL),
    )


def _show(system: System, known: _Known) -> models.Resolver:
    registered, name = system.registered, system.name
    configured = registered.limits.rate_per_second if registered else None
    own, common = known.rates.get((PolicyScope.RESOLVER, name)), known.rates.get((PolicyScope.GLOBAL, ALL))
    return models.Resolver(
        resolver=name,
        configured=registered is not None,
        kind=registered.kind if registered else None,
        host=registered.host if registered else None,
        operations=abilities_of(registered) if registered else [],
        manual=system.by_hand,
        reference=registered.ref if registered else None,
        fields=sorted(registered.fields) if registered and registered.fields is not None else None,
        after=list(registered.after) if registered else [],
        limits=_limits(registered.limits) if registered else None,
        rate_per_second=rate_in_force(own, configured, common) if registered else None,
        entries=dict(system.entries),
        dead_letters=system.abandoned,
        oldest_due_at=known.due.get(name),
        pause=_pause(system.paused or known.everything),
        breaker=_breaker(known.breakers.get(resolver_name(name))),
        read_back=_read_back(system.read_back),
        absence_alarm=_alarm(system.absences),
        last_day=_last_day(known.health.get(name)),
    )


def _limits(limits: Limits) -> models.ResolverLimits:
    return models.ResolverLimits(
        timeout_s=limits.timeout.total_seconds(),
        concurrency=limits.concurrency,
        rate_per_second=limits.rate_per_second,
        batch_size=limits.batch_size,
        max_attempts=limits.max_attempts,
        max_age_s=_seconds(limits.max_age),
        backoff_s=_seconds(limits.backoff),
        backoff_cap_s=_seconds(limits.backoff_cap),
        idempotent=limits.idempotent,
    )


def _seconds(time: timedelta | None) -> float | None:
    return None if time is None else time.total_seconds()


def _pause(paused: Paused | None) -> models.ResolverPause | None:
    if paused is None:
        return None
    return models.ResolverPause(
        resolver=paused.resolver,
        since=paused.since,
        until=paused.until,
        # Not the name that pages show: an officer is a person.
        by=paused.actor,
        code=paused.code,
        reason=paused.reason,
    )


def _breaker(view: BreakerView | None) -> models.BreakerInShort | None:
    if view is None:
        return None
    return models.BreakerInShort(
        name=view.name,
        state=view.state,
        pinned=view.pinned,
        blocked_until=view.block.until if view.block else None,
        blocked_by=view.block.reason if view.block else None,
        blocked_by_host=view.blocked_by_host,
        last_known=view.last_known,
    )


def _read_back(known: ReadBack | None) -> models.ReadBack | None:
    if known is None:
        return None
    return models.ReadBack(proof=known.proof, reason=known.reason, checked_at=known.checked_at)


def _alarm(alarm: Alarm | None) -> models.AbsenceAlarm | None:
    if alarm is None:
        return None
    return models.AbsenceAlarm(at=alarm.at, absent=alarm.now.absent, answers=alarm.now.answers)


def _last_day(health: Health | None) -> models.LastDay | None:
    if health is None:
        return None
    return models.LastDay(
        calls=health.calls,
        success_rate=health.rate,
        p95_latency_ms_estimate=None if health.p95_ms is None else round(health.p95_ms, 1),
        last_success_at=health.last_success,
    )
