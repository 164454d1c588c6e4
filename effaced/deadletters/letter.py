"""A dead letter as values: what a new one is made of, and how a stored one looks from outside."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import Problem, Refused
from effaced.deadletters.context import as_uuid, checked, code, no_message, with_failure
from effaced.deadletters.data import FailedOperationData
from effaced.deadletters.rules import PENDING, domain_of
from effaced.model import DeadLetterDomain, new_id

Values = dict[str, Any]
_REQUEST, _RESPONSE = "request", "response"
_BUDGET = 100


def new_letter(
    keyring: Keyring,
    *,
    domain: str,
    failure_type: str,
    error_message: str,
    error_code: str,
    entity_type: str | None,
    entity_id: str | None,
    entity_refs: Mapping[str, Any] | None,
    user_id: int | str | None,
    snapshot_data: Mapping[str, Any] | None,
    request_data: Mapping[str, Any] | None,
    response_data: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    retry_count: int,
    max_retries: int,
    next_action_hint: str,
    recommended_action: str,
    expires_at: datetime | None,
) -> Values:
    """The columns of a new letter. Refuses whatever may name a person."""
    no_message("error_message", error_message)
    for name, number in (("retry_count", retry_count), ("max_retries", max_retries)):
        if type(number) is not int or not 0 <= number <= _BUDGET:
            said = f"must be a number from 0 to {_BUDGET}"
            raise Refused(f"The {name} {said}.", problems=[Problem(name, said)])
    subject = None if user_id is None else keyring.subject_key(str(user_id))
    context = checked("snapshot_data", snapshot_data)
    if sent := checked("request_data", request_data):
        context[_REQUEST] = sent
    if got := checked("response_data", response_data):
        context[_RESPONSE] = got
    entry_id, request_id = _linked(entity_type, entity_id, entity_refs)
    now = clock.now()
    return {
        "id": new_id(),
        "domain": domain_of(domain),
        "failure_type": code("failure_type", failure_type, 255, needed=True),
        "error_code": code("error_code", error_code, 64),
        "entry_id": entry_id,
        "request_id": request_id,
        "resolver": None,
        "subject_key_id": subject.key_id if subject else None,
        "subject_hmac": subject.hmac if subject else None,
        "status": PENDING,
        "retry_count": retry_count,
        "max_retries": max_retries,
        "acquired": retry_count,
        "recommended_action": code("recommended_action", recommended_action, 32),
        "next_action_hint": code("next_action_hint", next_action_hint, 64),
        "context": context,
        "marks": checked("metadata", metadata),
        "assigned_to": None,
        "created_at": now,
        "updated_at": now,
        "last_retry_at": None,
        "expires_at": expires_at,
        "resolved_at": None,
        "resolved_by": None,
        "resolution": "",
        "resolution_note_id": None,
        "archived_at": None,
    }


def as_data(values: Mapping[Any, Any], note: str = "") -> FailedOperationData:
    """A stored letter, from its columns."""
    context = dict(values["context"] or {})
    sent, got = context.pop(_REQUEST, {}), context.pop(_RESPONSE, {})
    kind = "delivery" if values["domain"] is DeadLetterDomain.MESSAGE else "entry"
    links = {f"{kind}_id": values["entry_id"], "request_id": values["request_id"]}
    refs = {name: str(value) for name, value in links.items() if value is not None}
    entity = next(iter(refs), None)
    return FailedOperationData(
        id=str(values["id"]),
        domain=values["domain"].value,
        failure_type=values["failure_type"],
        status=values["status"].value,
        created_at=values["created_at"],
        updated_at=values["updated_at"],
        entity_type=entity.removesuffix("_id") if entity else None,
        entity_id=refs[entity] if entity else None,
        entity_refs=refs,
        subject_key_id=values["subject_key_id"],
        subject_hmac=values["subject_hmac"],
        resolver=values["resolver"],
        error_code=values["error_code"],
        snapshot_data=context,
        request_data=sent,
        response_data=got,
        metadata=dict(values["marks"] or {}),
        retry_count=values["retry_count"],
        max_retries=values["max_retries"],
        acquired=values["acquired"],
        last_retry_at=values["last_retry_at"],
        next_action_hint=values["next_action_hint"],
        recommended_action=values["recommended_action"],
        assigned_to=str(values["assigned_to"]) if values["assigned_to"] else None,
        expires_at=values["expires_at"],
        resolved_at=values["resolved_at"],
        resolved_by_id=values["resolved_by"],
        resolution_type=values["resolution"],
        resolution_note=note,
        archived_at=values["archived_at"],
    )


def after_failed_try(letter: Mapping[Any, Any], details: Mapping[str, Any] | None) -> Values:
    """The context of a stored letter after a replay that failed again in the same way."""
    told = checked("error_details", details)
    context = after_failure(letter, _kind(letter) | told)
    if "status_code" in told:
        context[_RESPONSE] = {**context.get(_RESPONSE, {}), "status_code": told["status_code"]}
    return context


def after_failure(letter: Mapping[Any, Any], latest: Values) -> Values:
    """The context of a stored letter after another failure, of whatever kind."""
    context = letter["context"] or {}
    before = _kind(letter) | {
        "attempts": context.get("attempts"),
        "tables": context.get("tables"),
        "status_code": context.get(_RESPONSE, {}).get("status_code"),
    }
    return with_failure(context, before, latest)


def _kind(letter: Mapping[Any, Any]) -> Values:
    return {
        "domain": letter["domain"].value,
        "error": letter["failure_type"],
        "code": letter["error_code"],
    }


def _linked(
    entity_type: str | None, entity_id: str | None, refs: Mapping[str, Any] | None
) -> tuple[UUID | None, UUID | None]:
    """What a letter is about: an entry or a delivery, and a request. Nothing else has a place."""
    given = dict(refs or {})
    if entity_type is not None or entity_id is not None:
        if entity_type not in ("entry", "delivery", "request"):
            said = "must be entry, delivery or request"
            raise Refused(f"The entity_type {said}.", problems=[Problem("entity_type", said)])
        if as_uuid(entity_id) is None:
            said = f"must be the id of the {entity_type}"
            raise Refused(f"The entity_id {said}.", problems=[Problem("entity_id", said)])
        given[f"{entity_type}_id"] = entity_id
    found = {name: as_uuid(value) for name, value in checked("entity_refs", given).items()}
    return found.get("entry_id") or found.get("delivery_id"), found.get("request_id")
