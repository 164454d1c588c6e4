"""Systems that are reached over HTTP, described in resolvers.yaml alone."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx

from effaced import clients
from effaced.model import SubjectRef
from effaced.resolvers.http_answers import Reply, exchange, failure, horizon
from effaced.resolvers.http_config import EraseCall, HttpConfig, VerifyCall
from effaced.resolvers.protocols import AlreadyAbsent, Answer, Erased, Limits, Rejected, Scheduled
from effaced.resolvers.settings import validate
from effaced.resolvers.templates import fill_json, fill_path, fill_query, unsafe, values_for


class HttpResolver:
    """Erases with one HTTP call whose status is the answer."""

    def __init__(self, name: str, config: HttpConfig, limits: Limits) -> None:
        self.name = name
        self._config = config
        self._base = httpx.URL(config.base_url)
        self._auth = config.auth.headers() if config.auth else {}
        self._timeout = limits.timeout

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self._config.base_url!r})"

    @property
    def host(self) -> str:
        """The host (and port) that is called."""
        return self._base.netloc.decode("ascii")

    async def __aenter__(self) -> HttpResolver:
        clients.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        await clients.release()

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        """Erase. What the configuration declares comes before what a status usually means."""
        config = self._config
        later = config.scheduled.status if config.scheduled else frozenset[int]()
        reply = await self._call(config.erase, ref, key, {"Idempotency-Key": str(key)}, body_at=later)
        if reply.status in config.gone:
            return AlreadyAbsent(status_code=reply.status)
        if config.scheduled and reply.status in later:
            return Scheduled(horizon(reply.body, config.scheduled.until), status_code=reply.status)
        if 200 <= reply.status <= 299:
            return Erased(status_code=reply.status)
        raise failure(reply)

    async def _call(
        self,
        call: EraseCall | VerifyCall,
        ref: SubjectRef,
        key: UUID,
        headers: dict[str, str],
        *,
        body_at: frozenset[int] = frozenset(),
    ) -> Reply:
        async with clients.http_client() as client:
            request = self._request(client, call, ref, key, headers)
            return await exchange(client, request, within=self._timeout, body_at=body_at)

    def _request(
        self,
        client: httpx.AsyncClient,
        call: EraseCall | VerifyCall,
        ref: SubjectRef,
        key: UUID,
        headers: dict[str, str],
    ) -> httpx.Request:
        values = values_for(ref, key)
        query = fill_query(call.query, values)
        target = self._base.raw_path.decode("ascii").rstrip("/") + fill_path(call.path, values)
        target += f"?{query}" if query else ""
        try:
            url = httpx.URL(f"{self._base.scheme}://{self.host}{target}")
        except httpx.InvalidURL:
            url = None
        # Whatever a client library may think of normalising: the call is exactly this one, or none.
        if url is None or url.raw_path != target.encode("ascii") or url.netloc != self._base.netloc:
            raise unsafe("can't be put into a URL")
        return client.build_request(
            call.method,
            url,
            headers=self._auth | headers,
            json=None if call.body is None else fill_json(call.body, values),
            timeout=self._timeout.total_seconds(),
        )


class VerifyingHttpResolver(HttpResolver):
    """The same, for systems that can be asked whether somebody is still there."""

    def __init__(self, name: str, config: HttpConfig, limits: Limits, verify: VerifyCall) -> None:
        super().__init__(name, config, limits)
        self._verify = verify

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        """Whether the system says absent. A status that is not declared says neither, and raises."""
        # No idempotency key: a system that replays answers would repeat what it said before.
        reply = await self._call(self._verify, ref, key, {})
        if reply.status in self._verify.absent:
            return True
        if reply.status in self._verify.present:
            return False
        if 200 <= reply.status <= 299:
            code = f"http_{reply.status}"
            raise Rejected(f"{code} is not declared under verify.", code=code, status_code=reply.status)
        raise failure(reply)


def from_config(name: str, config: dict[str, Any], limits: Limits) -> HttpResolver:
    """The resolver that a block of resolvers.yaml describes, with the abilities it describes."""
    settings = validate(HttpConfig, config)
    if settings.verify is not None:
        return VerifyingHttpResolver(name, settings, limits, settings.verify)
    return HttpResolver(name, settings, limits)
