"""What an API key can be, and which keys a key may create or revoke. CLI and API both go by these rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.accounts.metadata import parse_metadata_keys
from effaced.accounts.officers import lock_deciding_officer
from effaced.accounts.scopes import DEFAULT, NEED_AN_OFFICER, SANDBOX, Scope, has_scope, parse_scopes
from effaced.accounts.tables import ApiKey
from effaced.core.errors import Problem, Refused

APPROVALS = (0, 1)
_LONGEST_NAME = 80
_BEYOND = "beyond_own_rights"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """A key that is to be created."""

    name: str
    approvals_needed: int = 1
    scopes: Sequence[str] = DEFAULT
    officer_id: UUID | None = None
    """The officer in whose name it decides."""
    sandbox: bool = False
    metadata_keys: Sequence[str] = ()


def check_new_key(session: Session, new: NewApiKey) -> NewApiKey:
    """The key with its scopes and names in their order. Refuses with every wrong field at once."""
    problems: list[Problem] = []
    name, scopes, names = new.name.strip(), new.scopes, list(new.metadata_keys)
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        said = f"must have 1 to {_LONGEST_NAME} characters on one line"
        problems.append(Problem("name", said, code="malformed"))
    if new.approvals_needed not in APPROVALS:
        said = "must be 0 (execute at once) or 1 (an officer approves first)"
        problems.append(Problem("approvals_needed", said, code="not_allowed"))
    try:
        scopes = parse_scopes(scopes)
        problems += _scope_problems(scopes, new)
    except Refused as error:
        problems += error.problems
    if new.officer_id is not None and lock_deciding_officer(session, new.officer_id) is None:
        said = "must be an active officer or admin"
        problems.append(Problem("officer_id", said, code="not_an_active_officer"))
    try:
        names = parse_metadata_keys(names)
    except Refused as error:
        problems += error.problems
    if problems:
        raise Refused("The API key can't be created:", problems=problems)
    return replace(new, name=name, scopes=scopes, metadata_keys=tuple(names))


def check_grant(by: ApiKey, new: NewApiKey) -> None:
    """Refuse a key that could do what the key `by`, which is to create it, can't do itself.

    A key of an officer creates keys of the same officer only: they stop with the officer, and what they send
    counts as entered by the officer, who can't approve it.
    """
    problems = []
    if missing := [each for each in Scope if each in set(new.scopes) and not has_scope(by.scopes, each)]:
        said = f"can only be scopes that the calling key has; it lacks {', '.join(missing)}"
        problems.append(Problem("scopes", said, code=_BEYOND))
    if new.officer_id != by.officer_id:
        said = "must be the officer of the calling key" if by.officer_id else "must be left out"
        more = "; keys of other officers are created with `effaced apikey new --officer`"
        problems.append(Problem("officer_id", said + more, code=_BEYOND))
    if new.approvals_needed < by.approvals_needed:
        said = f"must be at least {by.approvals_needed}, as the calling key's own requests need"
        problems.append(Problem("approvals_needed", said, code=_BEYOND))
    if by.sandbox and not new.sandbox:
        said = "must be true: the calling key is a sandbox key"
        problems.append(Problem("sandbox", said, code=_BEYOND))
    if problems:
        raise Refused("This API key can't create a key that may do more than itself.", problems=problems)


def check_revocation(by: ApiKey, key: ApiKey) -> None:
    """Refuse to let the key `by` end one that may do more, or that another officer's decisions come with.

    It may end itself: whoever finds a leaked key can make it harmless.
    """
    if by.id == key.id:
        return
    held = DEFAULT if key.scopes is None else key.scopes
    others = key.officer_id is not None and key.officer_id != by.officer_id
    if others or not all(has_scope(by.scopes, Scope(each)) for each in held):
        said = "belongs to a key that may do more than the calling one; use `effaced apikey revoke`"
        problem = Problem("key_id", said, code=_BEYOND)
        raise Refused("This API key can't revoke a key that may do more than itself.", problems=[problem])


def _scope_problems(scopes: Sequence[Scope], new: NewApiKey) -> list[Problem]:
    problems = []
    decides = NEED_AN_OFFICER & set(scopes)
    if decides and new.officer_id is None:
        named = ", ".join(each for each in scopes if each in decides)
        said = f"is needed for {named}: such a key decides in an officer's name"
        problems.append(Problem("officer_id", said, code="missing"))
    if new.officer_id is not None and not decides:
        said = f"must have one of {', '.join(sorted(NEED_AN_OFFICER))} if the key has an officer"
        problems.append(Problem("scopes", said, code="missing"))
    if new.sandbox and (beyond := [each for each in scopes if each not in SANDBOX]):
        allowed = " and ".join(each for each in Scope if each in SANDBOX)
        said = f"of a sandbox key can only be {allowed}, and not {', '.join(beyond)}"
        problems.append(Problem("scopes", said, code="not_allowed"))
    return problems
