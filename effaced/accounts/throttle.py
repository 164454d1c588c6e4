"""How often sign-in may be tried: per address, per account, and per account from one place.

A stranger must be able neither to guess for long nor to lock an officer out. So the tightest limit holds
for one account from one address, and a browser from which the officer has signed in before is counted by
itself: whatever others try does not count against it.

Counters are kept under keyed hashes, the same way whether or not there is such an account, and erased
after the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.orm import Session

from effaced.accounts.officers import normalise_email
from effaced.accounts.tables import SignInCounter
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db.sql import insert_missing

WINDOW = timedelta(minutes=15)
MOST_PER_CALLER = 5
MOST_PER_ADDRESS = 20
MOST_PER_ACCOUNT = 50
_CALLER, _ADDRESS, _ACCOUNT = "caller", "address", "account"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many attempts within the window, counted under `key`. `account` if it is about one."""

    scope: str
    key: str
    most: int
    account: str | None


def limits_for(keyring: Keyring, *, email: str, address: str, device: str | None) -> tuple[Limit, ...]:
    """The limits that apply to one attempt, in the order in which they are locked."""
    account = _account_key(keyring, email)
    place = f"device {device}" if device else f"address {address}"
    caller = Limit(_CALLER, _key(keyring, f"{place} {account}"), MOST_PER_CALLER, account)
    if device:
        return (caller,)
    return (
        Limit(_ACCOUNT, account, MOST_PER_ACCOUNT, account),
        Limit(_ADDRESS, _key(keyring, f"address {address}"), MOST_PER_ADDRESS, None),
        caller,
    )


def time_to_wait(session: Session, limits: Sequence[Limit]) -> timedelta | None:
    """How long until an attempt is allowed again; None if one is allowed now. Only reads."""
    most = {(limit.scope, limit.key): limit.most for limit in limits}
    now = clock.now()
    waits = [
        row.began_at + WINDOW - now
        for row in session.scalars(select(SignInCounter).where(_any_of(limits)))
        if row.count >= most[row.scope, row.key] and row.began_at > now - WINDOW
    ]
    return max(waits, default=None)


def reserve_try(session: Session, limits: Sequence[Limit]) -> timedelta | None:
    """Count an attempt before it is made, so that simultaneous ones can't exceed a limit together.

    Returns how long to wait, and counts nothing, if a limit is reached.
    """
    now = clock.now()
    new = {"began_at": now, "count": 0}
    rows = [{"scope": each.scope, "key": each.key, "account": each.account, **new} for each in limits]
    insert_missing(session, SignInCounter, rows)
    counters = session.scalars(
        select(SignInCounter)
        .where(_any_of(limits))
        .order_by(SignInCounter.scope, SignInCounter.key)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    if (wait := time_to_wait(session, limits)) is not None:
        return wait
    for counter in counters:
        if counter.began_at <= now - WINDOW:
            counter.began_at, counter.count = now, 0
        counter.count += 1
    return None


def refund_attempt(session: Session, limits: Sequence[Limit]) -> None:
    """The password was right: do not count this attempt, and reset the caller's counter."""
    for limit in limits:
        left = 0 if limit.scope == _CALLER else SignInCounter.count - 1
        session.execute(
            update(SignInCounter)
            .where(_matches(limit), SignInCounter.count > 0)
            .values(count=left)
            .execution_options(synchronize_session=False)
        )


def reset_counters(session: Session, keyring: Keyring, email: str) -> None:
    """Reset the account's counters, whatever the address: its officer got a new password."""
    mine = SignInCounter.account == _account_key(keyring, email)
    session.execute(update(SignInCounter).where(mine).values(count=0))


def delete_old_counters(session: Session) -> None:
    """Delete the counters of windows that are over."""
    session.execute(delete(SignInCounter).where(SignInCounter.began_at <= clock.now() - WINDOW))


def _account_key(keyring: Keyring, email: str) -> str:
    return _key(keyring, f"account {normalise_email(email)}")


def _key(keyring: Keyring, counted: str) -> str:
    # What was typed may hold halves of characters, which have no bytes of their own.
    readable = counted.encode("utf-8", "replace").decode()
    return keyring.fingerprint(readable, purpose="sign-in").hmac


def _any_of(limits: Sequence[Limit]) -> ColumnElement[bool]:
    return or_(*(_matches(limit) for limit in limits))


def _matches(limit: Limit) -> ColumnElement[bool]:
    return (SignInCounter.scope == limit.scope) & (SignInCounter.key == limit.key)
