"""Targets that API keys register: made, changed, rotated, deleted, and opened to be sent to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from effaced.accounts.tables import ApiKey
from effaced.audit.append import append_one
from effaced.audit.events import MessageTargetChanged
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.errors import Conflict, NotFound, Problem, Refused, Unavailable
from effaced.core.log import get_logger
from effaced.model import NoticeType, TargetChange, new_id
from effaced.notify.guard import Guard
from effaced.notify.subscriptions import subscribe
from effaced.notify.tables import Delivery, DeliveryAttempt, MessageTarget
from effaced.notify.webhook import RegisteredTarget, new_secret

MOST_TARGETS = 10
OLD_SECRET_SIGNS_FOR = timedelta(hours=24)
_PURPOSE = "message_target"
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NewTarget:
    """A target to be registered. Its address has been checked."""

    name: str
    url: str
    events: Collection[NoticeType]
    all_requests: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """What to change of a target; None leaves it as it is."""

    url: str | None = None
    events: Collection[NoticeType] | None = None
    enabled: bool | None = None


def register(
    session: Session, keyring: Keyring, key: ApiKey, asked: NewTarget, *, actor: str
) -> tuple[MessageTarget, str]:
    """Register a target of this API key. Returns it with its secret, which is not shown again."""
    # Locked, so that two calls at once don't register one too many.
    session.execute(select(ApiKey.id).where(ApiKey.id == key.id).with_for_update())
    count = session.scalar(select(func.count()).where(MessageTarget.api_key_id == key.id)) or 0
    if count >= MOST_TARGETS:
        raise Conflict(
            f"An API key has at most {MOST_TARGETS} message targets. Delete one, or change it.",
            problems=[Problem("name", "is one too many", code="too_many")],
        )
    target_id, secret = new_id(), new_secret()
    target = MessageTarget(
        id=target_id,
        api_key_id=key.id,
        name=asked.name,
        url_sealed=_seal(keyring, asked.url, target_id, "url"),
        secret_sealed=_seal(keyring, secret, target_id, "secret"),
        events=sorted(asked.events),
        all_requests=asked.all_requests,
        # By the clock of messages: what is written from now on is for it.
        created_at=dbtime.now(session),
    )
    try:
        with session.begin_nested():
            session.add(target)
    except IntegrityError:
        said = "is the name of another target of this API key"
        raise Conflict(f"The name {said}.", problems=[Problem("name", said, code="taken")]) from None
    subscribe(session, target.address, asked.events)
    _record(session, target, TargetChange.REGISTERED, actor)
    return target, secret


def find_target(session: Session, key: ApiKey, target_id: UUID, *, lock: bool = False) -> MessageTarget:
    """This target, if this API key has registered it."""
    query = select(MessageTarget).where(MessageTarget.id == target_id, MessageTarget.api_key_id == key.id)
    found = session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise NotFound("This API key has registered no such message target.")
    return found


def targets_of(session: Session, key: ApiKey) -> list[MessageTarget]:
    mine = select(MessageTarget).where(MessageTarget.api_key_id == key.id)
    return list(session.scalars(mine.order_by(MessageTarget.name)))


def change(
    session: Session, keyring: Keyring, target: MessageTarget, changes: Changes, *, actor: str
) -> None:
    """Change address, types or whether it is enabled. While it is disabled nothing new is queued for it."""
    if changes.url is not None:
        target.url_sealed = _seal(keyring, changes.url, target.id, "url")
    if changes.events is not None:
        target.events = sorted(changes.events)
    if changes.enabled is not None and changes.enabled == (target.disabled_at is not None):
        target.disabled_at = None if changes.enabled else clock.now()
    subscribe(session, target.address, _events(target) if target.disabled_at is None else ())
    _record(session, target, TargetChange.CHANGED, actor)
    session.flush()


def rotate_secret(session: Session, keyring: Keyring, target: MessageTarget, *, actor: str) -> str:
    """Give the target a new secret. The one before it keeps signing beside it for a day."""
    secret = new_secret()
    old = _open(keyring, target.secret_sealed, target.id, "secret")
    target.previous_sealed = _seal(keyring, old, target.id, "previous")
    target.previous_until = clock.now() + OLD_SECRET_SIGNS_FOR
    target.secret_sealed = _seal(keyring, secret, target.id, "secret")
    _record(session, target, TargetChange.SECRET_ROTATED, actor)
    session.flush()
    return secret


def remove(
    session: Session,
    target: MessageTarget,
    *,
    actor: str,
    on_removed: Callable[[Session, Collection[UUID]], None],
) -> None:
    """Delete the target with its deliveries and their log; `on_removed` is called with those first."""
    subscribe(session, target.address, ())
    # Not while one of them is being settled: its attempt would be of a delivery that is gone.
    mine = select(Delivery.id).where(Delivery.target == target.address)
    locked = list(session.scalars(mine.order_by(Delivery.id).with_for_update()))
    on_removed(session, locked)
    session.execute(delete(DeliveryAttempt).where(DeliveryAttempt.delivery_id.in_(mine)))
    session.execute(delete(Delivery).where(Delivery.target == target.address))
    _record(session, target, TargetChange.DELETED, actor)
    session.delete(target)
    session.flush()


def open_targets(
    session: Session, keyring: Keyring, guard: Guard, *, timeout: timedelta
) -> Sequence[RegisteredTarget]:
    """All targets that may be sent to now: enabled, and their API keys not revoked."""
    found = session.scalars(
        select(MessageTarget)
        .join(ApiKey, ApiKey.id == MessageTarget.api_key_id)
        .where(MessageTarget.disabled_at.is_(None), ApiKey.revoked_at.is_(None))
        .order_by(MessageTarget.id)
    )
    opened = []
    for each in found:
        try:
            opened.append(_opened(keyring, each, guard, timeout))
        except Unavailable:
            # Sealed with a key that EFFACED_KEYS has no more: its messages wait, the others' do not.
            _log.error("message_target_not_opened", target=str(each.id))
    return opened


def url_of(keyring: Keyring, target: MessageTarget) -> str:
    return _open(keyring, target.url_sealed, target.id, "url")


def old_secret_signs(target: MessageTarget) -> bool:
    return target.previous_until is not None and clock.now() < target.previous_until


def require_other_name(name: str, taken: Collection[str]) -> None:
    """Refuse a name that a target of notify.yaml has: nobody could tell the two apart."""
    if name in taken:
        said = "is the name of a target in notify.yaml"
        raise Refused(f"The name {said}.", problems=[Problem("name", said, code="taken")])


def _opened(keyring: Keyring, target: MessageTarget, guard: Guard, timeout: timedelta) -> RegisteredTarget:
    secrets = [_open(keyring, target.secret_sealed, target.id, "secret")]
    if target.previous_sealed is not None and old_secret_signs(target):
        secrets.append(_open(keyring, target.previous_sealed, target.id, "previous"))
    return RegisteredTarget(
        name=target.address,
        url=url_of(keyring, target),
        secrets=tuple(secrets),
        events=frozenset(_events(target)),
        timeout=timeout,
        guard=guard,
    )


def _events(target: MessageTarget) -> list[NoticeType]:
    return [NoticeType(each) for each in target.events]


def _seal(keyring: Keyring, text: str, target_id: UUID, what: str) -> bytes:
    return keyring.seal(text.encode(), purpose=_PURPOSE, context=f"{target_id}:{what}")


def _open(keyring: Keyring, sealed: bytes, target_id: UUID, what: str) -> str:
    return keyring.open(sealed, purpose=_PURPOSE, context=f"{target_id}:{what}").decode()


def _record(session: Session, target: MessageTarget, made: TargetChange, actor: str) -> None:
    event = MessageTargetChanged(target_id=target.id, api_key_id=target.api_key_id, change=made)
    append_one(session, event, actor=actor)
