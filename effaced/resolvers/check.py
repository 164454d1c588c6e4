"""Trying a configuration out without deleting anything.

A system that can be looked at as a whole is: what does not fit is told, all of it.
A mistyped path answers 404 to everybody, and where 404 is declared to mean "gone" it would certify
everybody as erased. So the read-back is asked for somebody who must be there and for nobody.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from effaced.errors import ResolverError
from effaced.model import SubjectRef, new_id
from effaced.resolvers import sql
from effaced.resolvers.protocols import (
    CredentialsRefused,
    InspectingResolver,
    TransientFailure,
    VerifyingResolver,
)
from effaced.resolvers.registry import Registered, ResolverRegistry


class Finding(StrEnum):
    """How a check came out. `unsure` is no failure: something could not be looked at."""

    OK = "ok"
    UNSURE = "unsure"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found out about one resolver, in a sentence."""

    name: str
    finding: Finding
    sentence: str


async def check_all(registry: ResolverRegistry, names: Iterable[str] = ()) -> list[Checked]:
    """Check the resolvers of those names, or all of them, side by side. An unknown name is refused."""
    chosen = [registry.get(name) for name in names] or list(registry)
    async with registry.connected():
        return list(await asyncio.gather(*(check(each) for each in chosen)))


async def check(registered: Registered) -> Checked:
    """Look for the canary, which must be there, and for a made-up reference, which must not."""
    resolver, canary = registered.resolver, registered.canary
    if isinstance(resolver, InspectingResolver) and (trouble := await _trouble(registered, resolver)):
        return Checked(registered.name, Finding.PROBLEM, trouble)
    if not isinstance(resolver, VerifyingResolver):
        return Checked(
            registered.name,
            Finding.UNSURE,
            "Nothing was called: without `verify` there is nothing to ask that would not delete.",
        )
    if canary is not None:
        try:
            if await _absent(registered, resolver, canary):
                return Checked(registered.name, Finding.PROBLEM, _CANARY_ABSENT)
        except Exception as error:
            return Checked(registered.name, Finding.PROBLEM, f"The canary: {_explain(error, registered)}")
    try:
        if not await _absent(registered, resolver, made_up(canary)):
            return Checked(registered.name, Finding.PROBLEM, _NOBODY_PRESENT)
    except ResolverError as error:
        # Some systems refuse references that don't look like theirs. That tells nothing about people.
        said = f"A made-up reference: {_explain(error, registered)}"
        return Checked(registered.name, Finding.UNSURE, said)
    except Exception as error:
        said = f"A made-up reference: {_explain(error, registered)}"
        return Checked(registered.name, Finding.PROBLEM, said)
    if canary is None:
        return Checked(registered.name, Finding.UNSURE, _NO_CANARY)
    return Checked(registered.name, Finding.OK, "The canary is there, a made-up reference is not.")


def made_up(canary: str | None) -> str:
    """A reference nobody has; an e-mail address where the canary is one."""
    word = f"effaced-check-{secrets.token_hex(8)}"
    return f"{word}@{canary.rpartition('@')[2]}" if canary and "@" in canary else word


async def _absent(registered: Registered, resolver: VerifyingResolver, value: str) -> bool:
    async with asyncio.timeout(registered.limits.timeout.total_seconds()):
        return await resolver.verify_absent(SubjectRef(registered.ref, value), key=new_id())


async def _trouble(registered: Registered, resolver: InspectingResolver) -> str | None:
    """All that does not fit, a line each."""
    try:
        async with asyncio.timeout(registered.limits.timeout.total_seconds()):
            problems = await resolver.find_problems()
    except Exception as error:
        return f"Looking at it: {_explain(error, registered)}"
    return "\n".join(["It does not fit:", *map(str, problems)]) if problems else None


def _explain(error: Exception, registered: Registered) -> str:
    is_sql = registered.kind == sql.KIND
    if isinstance(error, CredentialsRefused):
        where = "`url`, and at what its user may do" if is_sql else "`auth`"
        return f"the system refused our credentials ({error.code}); look at {where}."
    if isinstance(error, TransientFailure):
        where = "url" if is_sql else "base_url"
        return f"no useful answer ({error.code}); is `{where}` right and the system up?"
    if isinstance(error, ResolverError) and is_sql:
        return f"the database was asked in vain ({error.code})."
    if isinstance(error, ResolverError):
        return f"the answer ({error.code}) is neither under verify.absent nor under verify.present."
    if isinstance(error, TimeoutError):
        return "no answer within `timeout`."
    # A resolver of somebody else's may raise anything; its message is not ours to show.
    return f"the resolver failed ({type(error).__name__})."


_CANARY_ABSENT = (
    "The canary is absent. Either it was deleted, or the path is wrong and says absent for everybody; "
    "nothing this resolver calls erased can be trusted until it is found."
)
_NOBODY_PRESENT = (
    "A made-up reference is present: the statuses under verify.present say nothing about a person."
)
_NO_CANARY = (
    "A made-up reference is absent, but that is what a mistyped path would say too; "
    "set `canary` to a reference that always exists."
)
