"""Reading and changing the retry policy of everything, of a resolver, or of a request."""

from __future__ import annotations

from collections.abc import Callable

from effaced.accounts.scopes import Scope
from effaced.api.operations.call import Call
from effaced.api.operations.caller import require_operator_for
from effaced.api.retries import models
from effaced.api.retries.models import RetryPolicyBody
from effaced.audit.notes import NoteRef, write_note
from effaced.core.errors import NotFound
from effaced.core.strict import suggest
from effaced.model import PolicyKind, PolicyScope
from effaced.retries.overrides import (
    Override,
    Target,
    get_override,
    set_override,
    set_override_as_sender,
    undo_override,
)
from effaced.retries.policy import check_changes
from effaced.saga.rules import RuleBook

GLOBAL = Target(PolicyKind.RETRY)


def of_resolver(call: Call, resolver: str) -> Target:
    known = [each.name for each in call.runtime.registry]
    if resolver not in known:
        raise NotFound(f"No resolver has this name{suggest(resolver, known)}")
    return Target(PolicyKind.RETRY, PolicyScope.RESOLVER, resolver)


def show(call: Call, target: Target) -> models.RetryPolicy:
    return _answer(call, target, get_override(call.session, target))


def change(call: Call, target: Target, body: RetryPolicyBody) -> models.RetryPolicy:
    """Have exactly these fields differ. Those that only operators may set need their scope."""
    require_operator_for(call.caller, body.policy, under="policy")
    changed = _setter(call)(
        call.session,
        target,
        body.policy,
        check=lambda changes: check_changes(changes, under="policy"),
        actor=call.actor,
        note=_note(call, target, body.reason),
    )
    return _answer(call, target, changed)


def clear(call: Call, target: Target) -> models.RetryPolicy:
    changed = _setter(call)(call.session, target, {}, check=check_changes, actor=call.actor)
    return _answer(call, target, changed)


def undo(call: Call, target: Target) -> models.RetryPolicy:
    return _answer(call, target, undo_override(call.session, target, actor=call.actor))


def _setter(call: Call) -> Callable[..., Override]:
    return set_override if call.caller.has(Scope.OPERATE_WRITE) else set_override_as_sender


def _note(call: Call, target: Target, reason: str | None) -> NoteRef | None:
    if reason is None:
        return None
    return write_note(call.session, call.keyring, reason, author=call.actor, request_id=target.request_id)


def _answer(call: Call, target: Target, override: Override | None) -> models.RetryPolicy:
    resolver = target.key if target.scope is PolicyScope.RESOLVER else None
    book = RuleBook(call.runtime.policy, call.runtime.registry)
    policy = book.policy(call.session, resolver=resolver, request_id=target.request_id)
    changed = override if override and override.version else None
    return models.RetryPolicy(
        scope=target.scope,
        resolver=resolver,
        request_id=target.request_id,
        policy=models.PolicyInForce.model_validate(policy.model_dump(mode="json")),
        override=dict(changed.body) if changed else {},
        version=changed.version if changed else 0,
        changed_at=changed.changed_at if changed else None,
        changed_by=changed.changed_by if changed else None,
    )
