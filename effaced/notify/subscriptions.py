"""Who wants messages of which type, and who may get them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from effaced.accounts.scopes import Scope, has_scope
from effaced.accounts.tables import ApiKey
from effaced.core.db import Database
from effaced.core.db.sql import insert_missing
from effaced.model import NoticeType
from effaced.notify.config import Targets
from effaced.notify.tables import REGISTERED, MessageTarget, Subscription

_OF_FILE = Subscription.target.not_like(f"{REGISTERED}%")


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A target that wants a type. `sender`: it gets only messages about requests of that API key."""

    target: str
    sender: UUID | None = None
    operational: bool = True
    since: datetime | None = None

    def may_get(self, message: MessageFacts) -> bool:
        if self.since is not None and message.created_at < self.since:
            return False
        if message.type.is_operational:
            return self.operational
        if self.sender is not None:
            return message.sender == self.sender
        return not message.only_sender


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """What decides who gets a message. `sender` is the API key of the request that it is about."""

    type: NoticeType
    created_at: datetime
    only_sender: bool
    sender: UUID | None


def subscribers(session: Session) -> Mapping[NoticeType, list[Subscriber]]:
    """By type, the targets that want it: rights are those that an API key has this moment."""
    registered = {each.target: each for each in _registered(session)}
    found: dict[NoticeType, list[Subscriber]] = defaultdict(list)
    for type_, target in session.execute(
        select(Subscription.type, Subscription.target).order_by(Subscription.target)
    ):
        if not target.startswith(REGISTERED):
            found[type_].append(Subscriber(target))
        elif target in registered:
            found[type_].append(registered[target])
    return found


def has_subscribers(session: Session) -> bool:
    return session.execute(select(Subscription.target).limit(1)).first() is not None


def subscribe_file(database: Database, targets: Targets) -> None:
    """Bring the subscriptions of notify.yaml's targets up to date; nothing is written if they are."""
    wanted = {(type_, each.name) for each in targets for type_ in each.events}
    with database.read() as session:
        known = _of_file(session)
    if known == wanted:
        return
    with database.begin() as session:
        for type_, target in sorted(_of_file(session) - wanted):
            gone = (Subscription.type == type_) & (Subscription.target == target)
            session.execute(delete(Subscription).where(gone))
        if wanted:
            rows = [{"type": type_, "target": name} for type_, name in sorted(wanted)]
            insert_missing(session, Subscription, rows)


def subscribe(session: Session, target: str, types: Iterable[NoticeType]) -> None:
    """Have this target get messages of these types, and no others."""
    session.execute(delete(Subscription).where(Subscription.target == target))
    if rows := [{"type": each, "target": target} for each in sorted(set(types))]:
        insert_missing(session, Subscription, rows)


def _of_file(session: Session) -> set[tuple[NoticeType, str]]:
    found = session.execute(select(Subscription.type, Subscription.target).where(_OF_FILE))
    return {(type_, target) for type_, target in found}


def _registered(session: Session) -> Iterable[Subscriber]:
    rows = session.execute(
        select(MessageTarget, ApiKey.scopes)
        .join(ApiKey, ApiKey.id == MessageTarget.api_key_id)
        .where(MessageTarget.disabled_at.is_(None), ApiKey.revoked_at.is_(None))
    )
    for target, scopes in rows:
        if not has_scope(scopes, Scope.MESSAGES_READ):
            continue
        everything = target.all_requests and has_scope(scopes, Scope.DECIDE_READ)
        yield Subscriber(
            target.address,
            sender=None if everything else target.api_key_id,
            operational=has_scope(scopes, Scope.OPERATE_READ),
            since=target.created_at,
        )
