"""API keys: who calls, which there are, creating and revoking them."""

from __future__ import annotations

from typing import Any

from effaced.accounts.api_keys import create_api_key, lock_usable_key, page_of_api_keys, revoke_api_key
from effaced.accounts.key_rules import NewApiKey, check_grant, check_revocation
from effaced.accounts.scopes import DEFAULT, Scope, has_scope
from effaced.accounts.tables import ApiKey, Officer
from effaced.api.keys import models
from effaced.api.models import PageQuery
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.declare import Routes
from effaced.api.path_id import read_path_id
from effaced.core.errors import Conflict, NotFound

routes = Routes("Keys", "/api/v1", about="API keys: who calls, and what for.")


@routes.get("/me", scope=None, sandbox=True)
def get_me(call: Call) -> models.Me:
    """The calling key: what it may do, in whose name, and how often it may call."""
    key = call.caller.key
    officer = call.session.get(Officer, key.officer_id) if key.officer_id else None
    return models.Me(
        **_fields(key),
        officer=models.OfficerOfKey(id=officer.id, name=officer.name, role=officer.role) if officer else None,
        calls_per_minute=call.runtime.settings.api_calls_per_minute or None,
    )


@routes.get("/keys", scope=Scope.KEYS_READ)
def list_keys(call: Call, query: PageQuery) -> models.KeyPage:
    """All API keys, revoked ones included, in the order of their creation."""
    page = page_of_api_keys(call.session, after=query.after, limit=query.limit)
    return models.KeyPage(data=[models.Key(**_fields(each)) for each in page.items], next=page.next)


@routes.get("/keys/<key_id>", scope=Scope.KEYS_READ)
def get_key(call: Call, key_id: str) -> models.Key:
    """One API key."""
    return models.Key(**_fields(_find(call, key_id)))


@routes.post("/keys", scope=Scope.KEYS_WRITE, status=201, secrets=("token",))
def create_key(call: Call, body: models.NewKey) -> Reply[models.CreatedKey]:
    """Create an API key that may do no more than the calling one.

    It has no scope that the calling key lacks, needs at least as many approvals, and decides for the same
    officer or for none if the calling key has none. The token is shown in this answer only.
    """
    new = NewApiKey(
        name=body.name,
        approvals_needed=body.approvals_needed,
        scopes=body.scopes,
        officer_id=body.officer_id or call.caller.officer_id,
        sandbox=body.sandbox,
        metadata_keys=body.metadata_keys,
    )
    calling = lock_usable_key(call.session, call.caller.key.id)
    if calling is None:
        raise Conflict("The calling API key was revoked just now.")
    check_grant(calling, new)
    key, token = create_api_key(call.session, new, actor=call.actor)
    answer = models.CreatedKey(**_fields(key), token=token)
    return Reply(answer, headers={"Location": f"/api/v1/keys/{key.id}"})


@routes.post("/keys/<key_id>/revoke", scope=Scope.KEYS_WRITE)
def revoke_key(call: Call, key_id: str) -> models.Key:
    """End an API key at once: one that may do no more than the calling key, or the calling key itself.

    Requests that it sent go on.
    """
    key = _find(call, key_id)
    check_revocation(call.caller.key, key)
    revoke_api_key(call.session, key, actor=call.actor)
    return models.Key(**_fields(key))


def _find(call: Call, key_id: str) -> ApiKey:
    missing = "There is no API key with this id."
    found = call.session.get(ApiKey, read_path_id(key_id, missing))
    if found is None:
        raise NotFound(missing)
    return found


def _fields(key: ApiKey) -> dict[str, Any]:
    held = DEFAULT if key.scopes is None else key.scopes
    return {
        "id": key.id,
        "name": key.name,
        "prefix": f"eff_{key.prefix}",
        "approvals_needed": key.approvals_needed,
        "scopes": [each for each in Scope if has_scope(held, each)],
        "officer_id": key.officer_id,
        "sandbox": key.sandbox,
        "metadata_keys": key.metadata_keys or [],
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
    }
