"""Registering where messages go, and looking at what has become of them."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import httpx
from sqlalchemy.orm import Session

from effaced.accounts.scopes import Scope
from effaced.api.messages import models
from effaced.api.messages.models import DeliveryQuery, MessageTargetChanges, NewMessageTarget
from effaced.api.messages.show import show_attempts, show_delivery, show_target
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.caller import require_scope
from effaced.api.operations.declare import Routes
from effaced.api.path_id import read_path_id
from effaced.core.errors import Conflict, NotFound, Problem, Refused
from effaced.deadletters.record import record_recoveries
from effaced.model import DeadLetterDomain
from effaced.notify.guard import AddressNotAllowed, resolve_now
from effaced.notify.read import DeliveryFilter, DeliveryLine, attempts_at, find_deliveries, find_delivery
from effaced.notify.registered import (
    Changes,
    NewTarget,
    change,
    find_target,
    register,
    remove,
    require_other_name,
    rotate_secret,
    targets_of,
)
from effaced.notify.settle import send_again
from effaced.notify.tables import MessageTarget
from effaced.notify.write import queue_test

routes = Routes(
    "Messages",
    "/api/v1/message-targets",
    about="Webhooks to which effaced sends what happens to requests, and what was delivered to them.",
)
_TARGET_REMOVED = "target_removed"


@routes.post(scope=Scope.MESSAGES_WRITE, status=201, secrets=("secret",))
def create_message_target(call: Call, body: NewMessageTarget) -> Reply[models.MessageTargetWithSecret]:
    """Register a webhook.

    It gets messages about the requests that this key has sent, from now on. Types about systems
    (`breaker.*`, `resolver.*`) are sent while the key has the scope `operate:read`. Messages are signed as
    Standard Webhooks has it; the secret is in this answer and in no other.
    """
    if body.all_requests:
        require_scope(call.caller, (Scope.DECIDE_READ,))
    require_other_name(body.name, call.runtime.targets.names)
    _require_allowed(call, body.url)
    asked = NewTarget(body.name, body.url, body.events, body.all_requests)
    target, secret = register(call.session, call.keyring, call.caller.key, asked, actor=call.actor)
    shown = show_target(call.keyring, target)
    path = f"{routes.prefix}/{target.id}"
    return Reply(_with_secret(shown, secret), headers={"Location": path})


@routes.get(scope=Scope.MESSAGES_READ)
def list_message_targets(call: Call) -> models.MessageTargetList:
    """The webhooks that this key has registered, by name: at most ten."""
    found = targets_of(call.session, call.caller.key)
    return models.MessageTargetList(data=[show_target(call.keyring, each) for each in found])


@routes.get("/<target_id>", scope=Scope.MESSAGES_READ)
def get_message_target(call: Call, target_id: str) -> models.MessageTarget:
    """One webhook that this key has registered."""
    return show_target(call.keyring, _target(call, target_id))


@routes.post("/<target_id>", scope=Scope.MESSAGES_WRITE)
def update_message_target(call: Call, target_id: str, body: MessageTargetChanges) -> models.MessageTarget:
    """Change the address or the types of a webhook, or disable and enable it."""
    _target(call, target_id)
    if body.url is not None:
        # Before it is locked: a name server may take its time.
        _require_allowed(call, body.url)
    target = _target(call, target_id, lock=True)
    changes = Changes(body.url, body.events, body.enabled)
    if changes != Changes():
        change(call.session, call.keyring, target, changes, actor=call.actor)
    return show_target(call.keyring, target)


@routes.delete("/<target_id>", scope=Scope.MESSAGES_WRITE)
def delete_message_target(call: Call, target_id: str) -> None:
    """Delete a webhook, with the log of its deliveries. What is queued for it is not sent."""
    target = _target(call, target_id, lock=True)
    actor = call.actor

    def resolve_dead_letters(session: Session, deliveries: Collection[UUID]) -> None:
        domains = (DeadLetterDomain.MESSAGE,)
        record_recoveries(session, domains, deliveries, resolution=_TARGET_REMOVED, by=actor)

    remove(call.session, target, actor=actor, on_removed=resolve_dead_letters)


@routes.post("/<target_id>/rotate-secret", scope=Scope.MESSAGES_WRITE, secrets=("secret",))
def rotate_message_target_secret(call: Call, target_id: str) -> models.MessageTargetWithSecret:
    """Give a webhook a new secret.

    For 24 hours messages are signed with the one before it as well, so that a receiver can be changed in
    between. A second rotation within that time ends the first secret.
    """
    target = _target(call, target_id, lock=True)
    secret = rotate_secret(call.session, call.keyring, target, actor=call.actor)
    return _with_secret(show_target(call.keyring, target), secret)


@routes.post("/<target_id>/test", scope=Scope.MESSAGES_WRITE, status=202)
def test_message_target(call: Call, target_id: str) -> models.Delivery:
    """Queue a `notify.test` message. It is sent within seconds; the delivery says what came of it."""
    target = _target(call, target_id)
    if target.disabled_at is not None:
        raise Conflict("This message target is disabled. Enable it first.")
    delivery_id = queue_test(call.session, target.address)
    return show_delivery(_delivery(call, target, str(delivery_id)))


@routes.get("/<target_id>/deliveries", scope=Scope.MESSAGES_READ)
def list_deliveries(call: Call, target_id: str, query: DeliveryQuery) -> models.DeliveryPage:
    """What was sent to a webhook, and what is on its way, newest first. Kept for 90 days."""
    target = _target(call, target_id)
    which = DeliveryFilter(target.address, query.status, query.type, query.request_id)
    page = find_deliveries(call.session, which, after=query.after, limit=query.limit)
    return models.DeliveryPage(data=[show_delivery(each) for each in page.items], next=page.next)


@routes.get("/<target_id>/deliveries/<delivery_id>", scope=Scope.MESSAGES_READ)
def get_delivery(call: Call, target_id: str, delivery_id: str) -> models.DeliveryWithAttempts:
    """One delivery, with every attempt at it."""
    found = _delivery(call, _target(call, target_id), delivery_id)
    attempts = show_attempts(attempts_at(call.session, found.id))
    return models.DeliveryWithAttempts(**dict(show_delivery(found)), attempt_log=attempts)


@routes.post("/<target_id>/deliveries/<delivery_id>/replay", scope=Scope.MESSAGES_WRITE, status=202)
def replay_delivery(call: Call, target_id: str, delivery_id: str) -> models.Delivery:
    """Send the same message again, under the same `webhook-id`. Refused while it is pending."""
    target = _target(call, target_id)
    found = _delivery(call, target, delivery_id)
    if target.disabled_at is not None:
        raise Conflict("This message target is disabled. Enable it first.")
    if not send_again(call.session, found.id):
        raise Conflict("This delivery is pending: it is sent without being asked again.")
    return show_delivery(_delivery(call, target, delivery_id))


def _target(call: Call, target_id: str, *, lock: bool = False) -> MessageTarget:
    named = read_path_id(target_id, "This API key has registered no such message target.")
    return find_target(call.session, call.caller.key, named, lock=lock)


def _delivery(call: Call, target: MessageTarget, delivery_id: str) -> DeliveryLine:
    missing = "This API key has no such delivery to this message target."
    found = find_delivery(call.session, target.address, read_path_id(delivery_id, missing))
    if found is None:
        raise NotFound(missing)
    return found


def _require_allowed(call: Call, url: str) -> None:
    """Refuse an address that no message would be sent to. It is checked again at each delivery."""
    guard = call.runtime.guard
    if why_not := guard.why_not(url):
        problem = Problem("url", why_not, code="address_not_allowed")
        raise Refused("The address is not allowed.", problems=[problem])
    parsed = httpx.URL(url)
    try:
        guard.require_allowed(resolve_now(parsed.host, parsed.port or 443), parsed.scheme)
    except AddressNotAllowed:
        said = "must name a host that is known, and that is on the public Internet"
        problem = Problem("url", said, code="address_not_allowed")
        raise Refused("The address is not allowed.", problems=[problem]) from None


def _with_secret(target: models.MessageTarget, secret: str) -> models.MessageTargetWithSecret:
    return models.MessageTargetWithSecret(**dict(target), secret=secret)
