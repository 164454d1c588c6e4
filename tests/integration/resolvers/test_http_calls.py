"""What goes over the wire: headers, credentials, connections; and what must never."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta
from uuid import uuid4

import pytest
from waiting import PATIENCE

from effaced.core import http_clients as clients
from effaced.model import SubjectRef
from effaced.resolvers.http import from_config
from effaced.resolvers.protocols import Limits
from effaced.resolvers.registry import Registered, ResolverRegistry

ANNA = SubjectRef("person", "anna@people.example")
VERIFY = {"path": "/people/{ref}", "absent": [404], "present": [200]}


def test_an_erase_carries_the_entry_id_as_idempotency_key(vendor, make):
    key = uuid4()
    asyncio.run(make().erase_subject(ANNA, key=key))
    assert str(key) == vendor.last.headers["Idempotency-Key"]


def test_a_read_back_carries_no_idempotency_key(vendor, make):
    vendor.answers(404)
    asyncio.run(make(verify=VERIFY).verify_absent(ANNA, key=uuid4()))
    assert "Idempotency-Key" not in vendor.last.headers


def test_calls_say_who_is_calling(vendor, make):
    asyncio.run(make().erase_subject(ANNA, key=uuid4()))
    assert vendor.last.headers["User-Agent"].startswith("effaced/")


@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [
        ({"bearer": "secret"}, "Authorization", "Bearer secret"),
        ({"basic": {"user": "anna", "password": "péage"}}, "Authorization", "Basic YW5uYTpww6lhZ2U="),
        ({"header": {"name": "X-Api-Key", "value": "secret"}}, "X-Api-Key", "secret"),
    ],
    ids=["bearer", "basic", "header"],
)
def test_credentials_are_sent_as_configured(vendor, make, auth, name, value):
    asyncio.run(make(auth=auth).erase_subject(ANNA, key=uuid4()))
    assert value == vendor.last.headers[name]


def test_query_and_json_carry_the_reference_as_a_value(vendor, make):
    key = uuid4()
    erase = {
        "method": "POST",
        "path": "/erasures",
        "query": {"email": "{ref}", "mode": "hard"},
        "json": {"who": ["{ref}"], "job": "job-{key}", "really": True},
    }
    asyncio.run(make(erase=erase).erase_subject(SubjectRef("person", 'a&b="c"'), key=key))
    assert vendor.last.target == "/erasures?email=a%26b%3D%22c%22&mode=hard"
    assert {"who": ['a&b="c"'], "job": f"job-{key}", "really": True} == json.loads(vendor.last.body)


def test_a_path_of_the_base_url_is_kept(vendor, make):
    asyncio.run(make(base_url=f"{vendor.url}/api/v2/").erase_subject(ANNA, key=uuid4()))
    assert vendor.last.target == "/api/v2/people/anna%40people.example"


def test_cookies_of_one_call_are_not_sent_with_the_next(vendor, make):
    vendor.answers(204, headers={"Set-Cookie": "session=anna; Path=/"})

    async def twice():
        async with make() as resolver:
            await resolver.erase_subject(ANNA, key=uuid4())
            await resolver.erase_subject(ANNA, key=uuid4())

    asyncio.run(twice())
    assert len(vendor.received) == 2
    assert all("Cookie" not in each.headers for each in vendor.received)


def _registry(vendor, **config) -> ResolverRegistry:
    block = {"base_url": vendor.url, "erase": {"method": "DELETE", "path": "/people/{ref}"}} | config
    limits = Limits(timeout=timedelta(seconds=PATIENCE))
    return ResolverRegistry(
        tuple(Registered(name, "person", from_config(name, dict(block), limits)) for name in ("one", "two"))
    )


@pytest.mark.parametrize(("status", "body"), [(204, b""), (200, b'{"deleted": true}')])
def test_connected_resolvers_share_one_client_and_its_connections(vendor, status, body):
    vendor.answers(status, body=body)

    async def call_both():
        async with _registry(vendor).connected() as registry:
            for each in (*registry, *registry):
                await each.resolver.erase_subject(ANNA, key=uuid4())

    asyncio.run(call_both())
    assert (len(vendor.received), len({each.connection for each in vendor.received})) == (4, 1)


def test_the_client_is_closed_when_the_last_holder_lets_go(vendor):
    async def after_connected():
        async with _registry(vendor).connected():
            client = clients.acquire()
            await clients.release()
            inside = client.is_closed
        return inside, client.is_closed

    assert asyncio.run(after_connected()) == (False, True)


def test_each_event_loop_has_a_client_of_its_own(vendor):
    async def client():
        async with clients.http_client() as mine:
            return mine

    assert asyncio.run(client()) is not asyncio.run(client())


def test_a_resolver_also_works_outside_of_connected(vendor, make):
    asyncio.run(make().erase_subject(ANNA, key=uuid4()))
    assert len(vendor.received) == 1


def test_nothing_about_a_person_or_a_secret_is_logged_at_any_level(vendor, make, caplog):
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    caplog.set_level(logging.DEBUG)
    asyncio.run(make(auth={"bearer": "s3cret"}).erase_subject(ANNA, key=uuid4()))
    assert len(vendor.received) == 1
    assert "anna" not in caplog.text
    assert "s3cret" not in caplog.text


def test_secrets_are_in_no_repr(make):
    resolver = make(auth={"bearer": "s3cret"})
    assert "s3cret" not in f"{resolver!r} {Registered('one', 'person', resolver)!r} {resolver._config!r}"
