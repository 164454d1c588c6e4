"""API keys: which of the company's systems may send requests, and how many approvals theirs need."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from sqlalchemy import or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from effaced.accounts.scopes import DEFAULT, parse_scopes
from effaced.accounts.tables import ApiKey
from effaced.audit.append import append_one
from effaced.audit.events import ApiKeyCreated, ApiKeyRevoked
from effaced.core import clock
from effaced.core.crypto import token_hash
from effaced.core.errors import Conflict, Problem, Refused
from effaced.model import new_id

APPROVALS = (0, 1)
_LONGEST_NAME = 80
_TOKEN = re.compile(r"eff_[a-z2-7]{8}_[a-z2-7]{32}")
_USE_RECORDED_EVERY = timedelta(minutes=1)


def create_api_key(
    session: Session,
    *,
    name: str,
    approvals_needed: int,
    actor: str,
    scopes: Iterable[str] = DEFAULT,
) -> tuple[ApiKey, str]:
    """Create a key and its token `eff_<prefix>_<secret>`. The token is shown once and kept as a hash only."""
    name = name.strip()
    problems = []
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        problems.append(
            Problem("name", f"must have 1 to {_LONGEST_NAME} characters on one line", code="malformed")
        )
    if approvals_needed not in APPROVALS:
        problems.append(
            Problem(
                "approvals_needed",
                "must be 0 (execute at once) or 1 (an officer approves first)",
                code="not_allowed",
            )
        )
    try:
        granted = parse_scopes(scopes)
    except Refused as error:
        problems += error.problems
    if problems:
        raise Refused("The API key can't be created:", problems=problems)
    prefix = _random_text(5)
    token = f"eff_{prefix}_{_random_text(20)}"
    key = ApiKey(
        id=new_id(),
        name=name,
        prefix=prefix,
        token_hash=token_hash(token),
        approvals_needed=approvals_needed,
        scopes=[each.value for each in granted],
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
    event = ApiKeyCreated(api_key_id=key.id, approvals_needed=approvals_needed, scopes=granted)
    append_one(session, event, actor=actor)
    return key, token


def authenticate(session: Session, token: str) -> ApiKey | None:
    """The API key of this token, unless it is unknown or revoked. Only reads; `record_use` writes."""
    if not _TOKEN.fullmatch(token):
        return None
    # The index sees a hash of what was sent: how long it takes tells nothing about the tokens there are.
    hashed = token_hash(token)
    key = session.scalar(select(ApiKey).where(ApiKey.token_hash == hashed))
    if key is None or not hmac.compare_digest(key.token_hash, hashed) or key.revoked_at is not None:
        return None
    return key


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


def revoke_api_key(session: Session, key: ApiKey, *, actor: str) -> None:
    """End the key at once. Requests that it sent go on."""
    if key.revoked_at is not None:
        raise Conflict("This API key is revoked already.")
    key.revoked_at = clock.now()
    append_one(session, ApiKeyRevoked(api_key_id=key.id), actor=actor)


def _random_text(size: int) -> str:
    return base64.b32encode(secrets.token_bytes(size)).decode().lower()
