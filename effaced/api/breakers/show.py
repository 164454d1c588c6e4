"""Breakers as the API answers them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from effaced.api.breakers import models
from effaced.api.operations.call import Call
from effaced.breakers.advice.tuner import AutoTunePlan
from effaced.breakers.layered.drift import DriftReconciliationRecord
from effaced.breakers.layered.forensics import analyze_outages
from effaced.breakers.model import RESOLVER, Transition
from effaced.breakers.view import read_views


def show_breakers(call: Call, names: Collection[str] | None = None) -> list[models.Breaker]:
    """These breakers, or all, with what this call has changed of them."""
    runtime = call.runtime
    here = runtime.breakers.within(call.session)
    views = read_views(call.session, here, runtime.keyring, runtime.called, names)
    return [models.Breaker.model_validate(each.as_dict()) for each in views]


def show_breaker(call: Call, name: str) -> models.Breaker:
    return show_breakers(call, [name])[0]


def show_transition(made: Transition) -> models.BreakerTransition:
    return models.BreakerTransition(
        breaker=made.service_name,
        scope="resolver" if made.scope == RESOLVER else "host",
        key=made.key,
        old=made.old,
        new=made.new,
        reason=made.reason,
        at=made.at,
        reset_timeout_s=made.reset_timeout_s,
        retry_at=made.retry_at,
        pinned_until=made.pinned_until,
        actor=made.actor,
    )


def show_policy(call: Call, name: str) -> models.BreakerPolicy:
    """The policy of a breaker or of `defaults`, with what this call has changed of it."""
    found = call.runtime.policy_in_force(call.session, name)
    return models.BreakerPolicy.model_validate(found.as_dict())


def show_advice(plan: AutoTunePlan) -> models.BreakerAdvice:
    told = plan.as_dict()
    changes = [
        models.SuggestedChange(kind=each.kind, field=each.field, old=each.was, new=each.now, why=each.why)
        for each in plan.changes
    ]
    return models.BreakerAdvice.model_validate({**told, "changes": changes})


def show_outages(call: Call, window_s: int) -> models.BreakerOutages:
    found = analyze_outages(call.session, timedelta(seconds=window_s))
    return models.BreakerOutages(
        window_s=window_s,
        total_failures=found["total_failures"],
        unsynced=found.get("unsynced", 0),
        first_failure_at=found.get("first_failure_at"),
        last_failure_at=found.get("last_failure_at"),
        recovered_at=found.get("recovered_at"),
        duration_seconds=found.get("duration_seconds", 0.0),
        errors=found["errors"],
        timeline=[
            models.MissedChange(
                at=each["at"],
                breaker=each["service_name"],
                old=each["from"],
                new=each["to"],
                operation=each["operation"],
                synced=each["synced"],
            )
            for each in found["timeline"]
        ],
        drift=[_drift(DriftReconciliationRecord(**each)) for each in found["drift"]],
    )


def _drift(record: DriftReconciliationRecord) -> models.BreakerDrift:
    return models.BreakerDrift.model_validate(
        {
            "breaker": record.service_name,
            "process_state": record.l1_state,
            "store_state": record.l2_state,
            "process_updated_at": record.l1_updated_at,
            "store_updated_at": record.l2_updated_at,
            "winner": record.winner,
            "result": record.result,
            "reconciled_at": record.reconciled_at,
            "jitter_seconds": record.jitter_seconds,
        }
    )
