"""Who did it, by name: the trail itself holds ids only."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.accounts.tables import ApiKey, Officer

_PLAIN = {"system": "effaced", "cli": "Command line"}


def names_of(session: Session, actors: Iterable[str]) -> dict[str, str]:
    """A name for each actor; one that is gone keeps the end of its id."""
    wanted = set(actors)
    people = {_actor_id(actor) for actor in wanted if actor.startswith("officer:")}
    systems = {_actor_id(actor) for actor in wanted if actor.startswith("api_key:")}
    names = {actor: _PLAIN.get(actor, _fallback_name(actor)) for actor in wanted}
    for officer_id, name in session.execute(select(Officer.id, Officer.name).where(Officer.id.in_(people))):
        names[f"officer:{officer_id}"] = name
    for key_id, name in session.execute(select(ApiKey.id, ApiKey.name).where(ApiKey.id.in_(systems))):
        names[f"api_key:{key_id}"] = f"{name} (API key)"
    return names


def all_actors(session: Session) -> list[tuple[str, str]]:
    """Everybody who can be filtered by: the plain ones, then officers, then API keys, each by name."""
    officers = session.execute(select(Officer.id, Officer.name).order_by(Officer.name).limit(500))
    keys = session.execute(select(ApiKey.id, ApiKey.name).order_by(ApiKey.name).limit(500))
    return [
        *_PLAIN.items(),
        *((f"officer:{officer_id}", name) for officer_id, name in officers),
        *((f"api_key:{key_id}", f"{name} (API key)") for key_id, name in keys),
    ]


def _actor_id(actor: str) -> UUID | None:
    try:
        return UUID(actor.partition(":")[2])
    except ValueError:
        return None


def _fallback_name(actor: str) -> str:
    """The label of an actor that no longer exists: its kind and the end of its id."""
    kind, _, rest = actor.partition(":")
    return f"{kind.replace('_', ' ')} …{rest[-6:]}" if rest else actor
