"""API keys: which of the company's systems may call, and what for; the rules are in `key_rules`."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import and_, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from effaced.accounts.key_rules import NewApiKey, check_new_key
from effaced.accounts.officers import MAY_DECIDE
from effaced.accounts.tables import ApiKey, Officer
from effaced.audit.append import append_one
from effaced.audit.events import ApiKeyCreated, ApiKeyRevoked
from effaced.core import clock
from effaced.core.crypto import token_hash
from effaced.core.errors import Conflict, Problem
from effaced.core.paging import PAGE, Page, after_key, decode, page_of
from effaced.model import new_id

_TOKEN = re.compile(r"eff_[a-z2-7]{8}_[a-z2-7]{32}")
_USE_RECORDED_EVERY = timedelta(minutes=1)


def create_api_key(session: Session, new: NewApiKey, *, actor: str) -> tuple[ApiKey, str]:
    """Create a key and its token `eff_<prefix>_<secret>`. The token is shown once and kept as a hash only."""
    new = check_new_key(session, new)
    prefix = _random_text(5)
    token = f"eff_{prefix}_{_random_text(20)}"
    key = ApiKey(
        id=new_id(),
        name=new.name,
        prefix=prefix,
        token_hash=token_hash(token),
        approvals_needed=new.approvals_needed,
        scopes=[str(each) for each in new.scopes],
        officer_id=new.officer_id,
        sandbox=new.sandbox,
        metadata_keys=list(new.metadata_keys) or None,
        created_at=clock.now(),
    )
    try:
        with session.begin_nested():
            session.add(key)
    except IntegrityError:
        raise Conflict(
            "There is an API key with this name already, perhaps a revoked one.",
            problems=[Problem("name", "is taken", code="taken")],
        ) from None
    event = ApiKeyCreated(
        api_key_id=key.id,
        approvals_needed=new.approvals_needed,
        scopes=tuple(new.scopes),
        officer_id=new.officer_id,
        sandbox=new.sandbox or None,
        metadata_keys=tuple(new.metadata_keys) or None,
    )
    append_one(session, event, actor=actor)
    return key, token


def authenticate(session: Session, token: str) -> ApiKey | None:
    """The API key of this token, unless it is unknown or revoked, or acts for an officer who may not decide.

    One statement that only reads; `record_use` writes.
    """
    if not _TOKEN.fullmatch(token):
        return None
    # The index sees a hash of what was sent: how long it takes tells nothing about the tokens there are.
    hashed = token_hash(token)
    usable = or_(ApiKey.officer_id.is_(None), and_(*MAY_DECIDE))
    key = session.scalar(
        select(ApiKey)
        .outerjoin(Officer, Officer.id == ApiKey.officer_id)
        .where(ApiKey.token_hash == hashed, ApiKey.revoked_at.is_(None), usable)
    )
    return key if key is not None and hmac.compare_digest(key.token_hash, hashed) else None


def lock_usable_key(session: Session, key_id: UUID) -> ApiKey | None:
    """The key, unless it was revoked meanwhile, which nobody can do until the transaction ends."""
    query = select(ApiKey).where(ApiKey.id == key_id, ApiKey.revoked_at.is_(None))
    locked = query.with_for_update(read=True).execution_options(populate_existing=True)
    return session.scalar(locked)


def use_is_due(key: ApiKey) -> bool:
    """Whether the last recorded use is a minute old: recording each would make every call a write."""
    return key.last_used_at is None or key.last_used_at <= clock.now() - _USE_RECORDED_EVERY


def record_use(session: Session, key_id: UUID) -> None:
    """Record that the key was used now, unless that was recorded within the last minute."""
    at = clock.now()
    stale = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at <= at - _USE_RECORDED_EVERY)
    session.execute(update(ApiKey).where(ApiKey.id == key_id, stale).values(last_used_at=at))


def find_api_key(session: Session, name_or_prefix: str) -> ApiKey | None:
    """The key of this name or, if no key is named so, of this prefix."""
    wanted = name_or_prefix.strip()
    if not wanted.isprintable():
        return None
    named = session.scalar(select(ApiKey).where(ApiKey.name == wanted))
    return named or session.scalar(select(ApiKey).where(ApiKey.prefix == wanted.removeprefix("eff_")))


def list_api_keys(session: Session) -> list[ApiKey]:
    """All keys, the revoked ones last, else by name."""
    return list(session.scalars(select(ApiKey).order_by(ApiKey.revoked_at.is_not(None), ApiKey.name)))


def page_of_api_keys(session: Session, *, after: str | None = None, limit: int = PAGE) -> Page[ApiKey]:
    """All keys, revoked ones included, in the order of their creation."""
    query = select(ApiKey).order_by(ApiKey.created_at, ApiKey.id).limit(limit + 1)
    if after is not None:
        query = query.where(after_key((ApiKey.created_at, ApiKey.id), decode(after, datetime, UUID)))
    found = list(session.scalars(query))
    return page_of(found, limit, [(each.created_at, each.id) for each in found])


def revoke_api_key(session: Session, key: ApiKey, *, actor: str) -> None:
    """End the key at once. Requests that it sent go on."""
    mine = update(ApiKey).where(ApiKey.id == key.id, ApiKey.revoked_at.is_(None))
    if session.scalar(mine.values(revoked_at=clock.now()).returning(ApiKey.id)) is None:
        raise Conflict("This API key is revoked already.")
    append_one(session, ApiKeyRevoked(api_key_id=key.id), actor=actor)


def _random_text(size: int) -> str:
    return base64.b32encode(secrets.token_bytes(size)).decode().lower()
