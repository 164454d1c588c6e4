"""Whether a system's read-back can be trusted: the last check, as long as the configuration is the same."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import ResolverChecked
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import is_postgres
from effaced.model import CheckReason, ReadBackProof
from effaced.resolvers.check import Checked
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.resolvers.tables import ResolverCheck

_PURPOSE = "resolver_configuration"


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What is known about a system's read-back. `checked_at` is None if it was never checked."""

    proof: ReadBackProof
    reason: CheckReason
    checked_at: datetime | None = None

    @property
    def proven(self) -> bool:
        return self.proof is ReadBackProof.PROVEN


def record_check(
    session: Session, keyring: Keyring, registered: Registered, checked: Checked, *, actor: str
) -> None:
    """Keep the result. It is told in the trail when it differs from the last, or the canary was erased."""
    config = keyring.fingerprint(_configuration(registered), purpose=_PURPOSE)
    found = {
        "proof": checked.proof,
        "reason": checked.reason,
        "checked_at": clock.now(),
        "config_key_id": config.key_id,
        "config_hmac": config.hmac,
    }
    insert_or_leave = postgres_insert if is_postgres(session) else sqlite_insert
    inserted = session.execute(
        insert_or_leave(ResolverCheck)
        .values(resolver=registered.name, **found)
        .on_conflict_do_nothing()
        .returning(ResolverCheck.resolver)
    ).first()
    known = None
    if inserted is None:
        row = session.get_one(ResolverCheck, registered.name, with_for_update=True)
        known = _read_back(row, keyring, registered)
        for name, value in found.items():
            setattr(row, name, value)
    if checked.erased or known is None or (known.proof, known.reason) != (checked.proof, checked.reason):
        event = ResolverChecked(
            resolver=registered.name,
            proof=checked.proof,
            reason=checked.reason,
            canary_erased=checked.erased,
        )
        append_one(session, event, actor=actor)


def read_backs(session: Session, registry: ResolverRegistry, keyring: Keyring) -> dict[str, ReadBack]:
    """How far the read-back of each resolver that has one is proven."""
    rows = {row.resolver: row for row in session.scalars(select(ResolverCheck))}
    return {each.name: _read_back(rows.get(each.name), keyring, each) for each in registry if each.verifies}


def _read_back(row: ResolverCheck | None, keyring: Keyring, registered: Registered) -> ReadBack:
    if row is None:
        return ReadBack(ReadBackProof.UNPROVEN, CheckReason.NEVER_CHECKED)
    if not _same_configuration(row, keyring, registered):
        return ReadBack(ReadBackProof.UNPROVEN, CheckReason.CONFIGURATION_CHANGED, row.checked_at)
    return ReadBack(row.proof, row.reason, row.checked_at)


def _same_configuration(row: ResolverCheck, keyring: Keyring, registered: Registered) -> bool:
    known = keyring.fingerprints(_configuration(registered), purpose=_PURPOSE)
    return (row.config_key_id, row.config_hmac) in [(each.key_id, each.hmac) for each in known]


def _configuration(registered: Registered) -> str:
    """What the keyed hash is made of: the digest alone could be guessed at, since it holds secrets."""
    kind = type(registered.resolver)
    return "\n".join(
        (registered.kind, registered.ref, f"{kind.__module__}.{kind.__qualname__}", registered.configuration)
    )
