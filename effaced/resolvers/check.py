"""Checking a resolver: does its read-back tell a person who is there from one who is not?

A mistyped path answers 404 to everybody, and where 404 is declared to mean "gone" it would certify
everybody as erased. So the read-back has to see a canary, a test person known to be there, as present, and
an invented reference as absent. Only a check that may erase the canary shows that an erasure is seen too.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import string
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4

from effaced.core.errors import ResolverError
from effaced.model import CheckReason, ReadBackProof, SubjectRef, new_id
from effaced.resolvers import sql
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    CredentialsRefused,
    Erased,
    InspectingResolver,
    Resolver,
    TransientFailure,
    VerifyingResolver,
)
from effaced.resolvers.registry import Registered, ResolverRegistry

T = TypeVar("T")
_PROOFS = {
    CheckReason.CANARY_SEEN: ReadBackProof.PROVEN,
    CheckReason.CANARY_ERASED: ReadBackProof.PROVEN,
    CheckReason.CANARY_NOT_ERASED_YET: ReadBackProof.PROVEN,
    CheckReason.NO_READ_BACK: ReadBackProof.UNPROVEN,
    CheckReason.NO_CANARY: ReadBackProof.UNPROVEN,
    CheckReason.INVENTED_REFUSED: ReadBackProof.UNPROVEN,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """The result for one resolver. `erased`: the system was told to erase the canary."""

    name: str
    reason: CheckReason
    sentence: str
    erased: bool = False

    @property
    def proof(self) -> ReadBackProof:
        return _PROOFS.get(self.reason, ReadBackProof.FAILED)


async def check_all(
    registry: ResolverRegistry,
    names: Iterable[str] = (),
    *,
    canaries: Mapping[str, str] | None = None,
    erase: bool = False,
) -> list[Checked]:
    """Check the resolvers of those names, or all of them, side by side. An unknown name is refused.

    `canaries` are references, by resolver, that stand for those in the file. With `erase` the canary is
    erased, where it was seen, and must be absent afterwards.
    """
    chosen = [registry.get(name) for name in names] or list(registry)
    given = canaries or {}
    async with registry.connected():
        checks = (check(each, canary=given.get(each.name), erase=erase) for each in chosen)
        return list(await asyncio.gather(*checks))


async def check(registered: Registered, *, canary: str | None = None, erase: bool = False) -> Checked:
    """Look for the canary, which must be there, and for an invented reference, which must not."""
    canary = canary or registered.canary
    if trouble := await _misfit(registered):
        return trouble
    if not registered.verifies:
        return _result(registered, CheckReason.NO_READ_BACK)
    if canary is not None and (trouble := await _expect_present(registered, canary)):
        return trouble
    if trouble := await _expect_absent(registered, invent_reference(canary)):
        return trouble
    if canary is None:
        return _result(registered, CheckReason.NO_CANARY)
    return await _erase_canary(registered, canary) if erase else _result(registered, CheckReason.CANARY_SEEN)


def invent_reference(canary: str | None) -> str:
    """A reference that nobody has, of the canary's shape: systems refuse what can't be one of theirs."""
    word = f"effaced-check-{secrets.token_hex(8)}"
    if canary is None:
        return word
    if "@" in canary:
        return f"{word}@{canary.rpartition('@')[2]}"
    if canary.isascii() and canary.isdigit():
        length = max(9, len(canary))  # within 32 bits, where the canary is
        return "1" + "".join(secrets.choice(string.digits) for _ in range(length - 1))
    if _is_uuid(canary):
        return str(uuid4())
    if re.fullmatch(r"[0-9a-f]{16,}|[0-9A-F]{16,}", canary):
        digits = secrets.token_hex(len(canary))[: len(canary)]
        return digits.upper() if canary == canary.upper() else digits
    return word


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


async def _misfit(registered: Registered) -> Checked | None:
    """All that does not fit, a line each, of a system that can be looked at as a whole."""
    if not isinstance(registered.resolver, InspectingResolver):
        return None
    try:
        problems = await _within(registered, registered.resolver.find_problems())
    except BaseException as error:
        _reraise_if_stopping(error)
        return _result(registered, CheckReason.MISFIT, f"Not inspected: {_explain(error, registered)}")
    if not problems:
        return None
    lines = "\n".join(["The configuration does not fit the system:", *map(str, problems)])
    return _result(registered, CheckReason.MISFIT, lines)


async def _expect_present(registered: Registered, canary: str) -> Checked | None:
    try:
        absent = await _look(registered, canary)
    except BaseException as error:
        _reraise_if_stopping(error)
        said = f"The canary: {_explain(error, registered)}"
        return _result(registered, CheckReason.CANARY_UNANSWERED, said)
    return _result(registered, CheckReason.CANARY_ABSENT) if absent else None


async def _expect_absent(registered: Registered, invented: str) -> Checked | None:
    try:
        absent = await _look(registered, invented)
    except BaseException as error:
        _reraise_if_stopping(error)
        # Some systems refuse references that don't look like theirs, which says nothing about people.
        refused = isinstance(error, ResolverError)
        reason = CheckReason.INVENTED_REFUSED if refused else CheckReason.INVENTED_UNANSWERED
        return _result(registered, reason, f"An invented reference: {_explain(error, registered)}")
    return None if absent else _result(registered, CheckReason.INVENTED_PRESENT)


async def _erase_canary(registered: Registered, canary: str) -> Checked:
    """Erase the canary, which was seen, and look again, as an erasure does."""
    ref = SubjectRef(registered.ref, canary)
    try:
        call = cast(Resolver, registered.resolver).erase_subject(ref, key=new_id())
        answer: object = await _within(registered, call)
        if not issubclass(type(answer), Answer):
            raise TypeError("erase_subject must answer with one of the types of effaced.resolvers.protocols")
        if not issubclass(type(answer), Erased | AlreadyAbsent):
            return _result(registered, CheckReason.CANARY_NOT_ERASED_YET, erased=True)
        absent = await _look(registered, canary)
    except BaseException as error:
        _reraise_if_stopping(error)
        said = f"Erasing the canary: {_explain(error, registered)}"
        return _result(registered, CheckReason.ERASE_FAILED, said, erased=True)
    reason = CheckReason.CANARY_ERASED if absent else CheckReason.STILL_PRESENT
    return _result(registered, reason, erased=True)


async def _look(registered: Registered, value: str) -> bool:
    resolver = cast(VerifyingResolver, registered.resolver)
    said: Any = await _within(
        registered, resolver.verify_absent(SubjectRef(registered.ref, value), key=new_id())
    )
    if not isinstance(said, bool):
        raise TypeError("verify_absent must answer True or False")
    return said


async def _within(registered: Registered, call: Awaitable[T]) -> T:
    async with asyncio.timeout(registered.limits.timeout.total_seconds()):
        return await call


def _reraise_if_stopping(error: BaseException) -> None:
    """Raise again what ends this process or task. Anything else is the resolver's, even a SystemExit."""
    task = asyncio.current_task()
    stopping = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    if stopping or isinstance(error, KeyboardInterrupt):
        raise error


def _result(
    registered: Registered, reason: CheckReason, sentence: str = "", *, erased: bool = False
) -> Checked:
    return Checked(registered.name, reason, sentence or SENTENCES[reason], erased)


def _explain(error: BaseException, registered: Registered) -> str:
    is_sql = registered.kind == sql.KIND
    if isinstance(error, CredentialsRefused):
        where = "`url` and the rights of its user" if is_sql else "`auth`"
        return f"the system refused our credentials ({error.code}); check {where}."
    if isinstance(error, TransientFailure):
        where = "url" if is_sql else "base_url"
        return f"no useful answer ({error.code}); check `{where}` and whether the system is up."
    if isinstance(error, ResolverError) and is_sql:
        return f"the database refused the query ({error.code})."
    if isinstance(error, ResolverError):
        return f"the answer ({error.code}) is neither under verify.absent nor under verify.present."
    if isinstance(error, TimeoutError):
        return "no answer within `timeout`."
    # A resolver of somebody else's may raise anything; its message is not ours to show.
    return f"the resolver failed ({type(error).__name__})."


SENTENCES = {
    CheckReason.CANARY_SEEN: "The canary is present, an invented reference is not.",
    CheckReason.CANARY_ERASED: "The canary was present, was erased, and is absent now.",
    CheckReason.CANARY_NOT_ERASED_YET: (
        "The canary is present, an invented reference is not. The system did not erase the canary at once, "
        "so whether it goes is not shown yet."
    ),
    CheckReason.NO_READ_BACK: "It has no read-back, so nothing was called.",
    CheckReason.NO_CANARY: (
        "An invented reference is absent, but a mistyped path would answer the same. No canary was seen: set "
        "`canary` to a reference that always exists, or use --canary."
    ),
    CheckReason.INVENTED_REFUSED: "The system refuses an invented reference, so nobody was seen absent.",
    CheckReason.MISFIT: "The configuration does not fit the system.",
    CheckReason.CANARY_ABSENT: (
        "The canary is absent. Either it was deleted, or the read-back says absent for everybody; until that "
        "is known, nothing that this resolver calls erased can be trusted."
    ),
    CheckReason.CANARY_UNANSWERED: "The read-back could not be made for the canary.",
    CheckReason.INVENTED_PRESENT: (
        "An invented reference is present: the statuses under verify.present say nothing about a person."
    ),
    CheckReason.INVENTED_UNANSWERED: "The read-back could not be made for an invented reference.",
    CheckReason.ERASE_FAILED: "The canary could not be erased.",
    CheckReason.STILL_PRESENT: (
        "The system answered that the canary was erased, and the read-back still finds it: the record stays "
        "retrievable, or versions or copies are left. Every erasure here would end as still present."
    ),
    CheckReason.NEVER_CHECKED: "It was never checked: run `effaced resolver check`.",
    CheckReason.CONFIGURATION_CHANGED: (
        "The configuration was changed after the last check: run `effaced resolver check`."
    ),
}
