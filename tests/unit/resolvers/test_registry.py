"""The registry, and the resolver that does nothing."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from effaced.core.errors import ResolverError
from effaced.model import SubjectRef
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.protocols import (
    CallTimeout,
    Erased,
    Resolver,
    Scheduled,
    TransientFailure,
    VerifyingResolver,
)
from effaced.resolvers.registry import Registered, ResolverRegistry


class Counting(NoopResolver):
    """Knows how often it is open."""

    def __init__(self) -> None:
        self.open = 0

    async def __aenter__(self):
        self.open += 1
        return self

    async def __aexit__(self, *_):
        self.open -= 1


def test_noop_answers_erased():
    answer = asyncio.run(NoopResolver().erase_subject(SubjectRef("person", "1"), key=uuid4()))
    assert Erased() == answer


def test_noop_can_erase_and_nothing_else():
    assert isinstance(NoopResolver(), Resolver)
    assert not isinstance(NoopResolver(), VerifyingResolver)


def test_resolvers_are_open_while_connected_and_closed_even_after_an_error():
    counting = Counting()
    registry = ResolverRegistry((Registered("a", "x", counting), Registered("b", "x", NoopResolver())))

    async def fail_inside():
        async with registry.connected():
            seen.append(counting.open)
            raise KeyError

    seen: list[int] = []
    with pytest.raises(KeyError):
        asyncio.run(fail_inside())
    assert (seen, counting.open) == ([1], 0)


def test_an_unknown_name_is_a_permanent_failure_with_a_code():
    with pytest.raises(ResolverError) as raised:
        ResolverRegistry().get("crm")
    assert raised.value.code == "unknown_resolver"


def test_a_registered_resolver_is_found_by_name():
    registry = ResolverRegistry()
    registry.register(Registered("crm", "contact", NoopResolver()))
    assert (registry.get("crm").ref, "crm" in registry, len(registry)) == ("contact", True, 1)


def test_a_canary_is_in_no_repr():
    assert "cus_1" not in repr(Registered("crm", "contact", NoopResolver(), canary="cus_1"))


def test_the_status_code_says_how_but_not_what():
    assert Erased() == Erased(status_code=204)
    assert Erased() != Scheduled(until=None)  # type: ignore[arg-type]


def test_a_call_timeout_is_caught_as_either():
    assert issubclass(CallTimeout, TransientFailure)
    assert issubclass(CallTimeout, TimeoutError)
