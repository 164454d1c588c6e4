"""Erasing, looking and correcting with HTTP calls."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

import httpx

from effaced.core import clock
from effaced.core import http_clients as clients
from effaced.model import Correction, SubjectRef
from effaced.resolvers.http.answers import Reply, exchange, failure, horizon
from effaced.resolvers.http.config import EraseCall, HttpConfig, RectifyCall, VerifyCall
from effaced.resolvers.http.templates import fill_json, fill_path, fill_query, unsafe, values_for
from effaced.resolvers.protocols import AlreadyAbsent, Answer, Erased, Limits, Rectified, Rejected, Scheduled
from effaced.resolvers.settings import validate

_Call = EraseCall | VerifyCall | RectifyCall
# How long to wait, in seconds, before looking again at a deletion that is late and must not be repeated.
_LOOK_AGAIN = 86_400


class HttpSystem:
    """One system over HTTP. Its abilities are in the classes below, one each."""

    def __init__(self, name: str, config: HttpConfig, limits: Limits) -> None:
        self.name = name
        self.fields = frozenset(config.rectify.fields) if config.rectify else None
        self._config = config
        self._base = httpx.URL(config.base_url)
        self._auth = config.auth.headers() if config.auth else {}
        self._timeout = limits.timeout
        self._idempotent = limits.idempotent

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self._config.base_url!r})"

    @property
    def host(self) -> str:
        """The host (and port) that is called."""
        return self._base.netloc.decode("ascii")

    async def __aenter__(self) -> Self:
        clients.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        await clients.release()

    async def _call(
        self,
        call: _Call,
        ref: SubjectRef,
        key: UUID,
        headers: dict[str, str],
        *,
        body: Any = None,
        body_at: frozenset[int] = frozenset(),
    ) -> Reply:
        async with clients.http_client() as client:
            request = self._request(client, call, ref, key, headers, body)
            return await exchange(client, request, within=self._timeout, body_at=body_at)

    def _request(
        self,
        client: httpx.AsyncClient,
        call: _Call,
        ref: SubjectRef,
        key: UUID,
        headers: dict[str, str],
        body: Any,
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
        filled = None if call.body is None else fill_json(call.body, values)
        return client.build_request(
            call.method,
            url,
            headers=self._auth | headers,
            json=filled if body is None else _merged(filled or {}, body),
            timeout=self._timeout.total_seconds(),
        )


class HttpResolver(HttpSystem):
    """Erases with one HTTP call whose status is the answer."""

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        """Erase. What the configuration declares comes before what a status usually means."""
        config, later = self._config, self._config.scheduled
        assert config.erase is not None
        dated = later.status if later and later.until else frozenset[int]()
        reply = await self._call(config.erase, ref, key, _idempotent(key), body_at=dated)
        if reply.status in config.gone:
            return AlreadyAbsent(status_code=reply.status)
        if later and reply.status in later.status:
            until = (
                horizon(reply.body, later.until)
                if later.until
                else clock.now() + timedelta(seconds=later.every or 0)
            )
            return Scheduled(until, status_code=reply.status)
        if 200 <= reply.status <= 299:
            return Erased(status_code=reply.status)
        raise failure(reply)


class VerifyingHttp(HttpSystem):
    """Can be asked whether somebody is still there."""

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        """Whether the system says absent. A status that is not declared says neither, and raises."""
        verify = self._config.verify
        assert verify is not None
        # No idempotency key: a system that replays answers would repeat what it said before.
        reply = await self._call(verify, ref, key, {})
        if reply.status in verify.absent:
            return True
        if reply.status in verify.present:
            return False
        if 200 <= reply.status <= 299:
            code = f"http_{reply.status}"
            raise Rejected(f"{code} is not declared under verify.", code=code, status_code=reply.status)
        raise failure(reply)


class LaterHttp(VerifyingHttp, HttpResolver):
    """Accepts a deletion now and carries it out later.

    The read-back may look at something that only a deletion creates, such as a trash, so it says nothing
    before the system has accepted the first call.
    """

    async def resume_erasure(self, ref: SubjectRef, *, key: UUID) -> Answer:
        """Look first: some systems accept every call, and would start anew with each."""
        if await self.verify_absent(ref, key=key):
            return AlreadyAbsent()
        scheduled = self._config.scheduled
        assert scheduled is not None
        if scheduled.repeat and self._idempotent:
            return await self.erase_subject(ref, key=key)
        return Scheduled(clock.now() + timedelta(seconds=scheduled.every or _LOOK_AGAIN))


class ExpiringHttp(VerifyingHttp):
    """Can't be told to delete: what is there is looked at again when it should have expired."""

    async def schedule_erasure(self, ref: SubjectRef, *, key: UUID) -> Scheduled | AlreadyAbsent:
        if await self.verify_absent(ref, key=key):
            return AlreadyAbsent()
        expires = self._config.expires
        assert expires is not None
        return Scheduled(clock.now() + timedelta(days=expires.within_days))


class RectifyingHttp(HttpSystem):
    """Takes corrections, each under the name that the configuration gives its category."""

    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified | AlreadyAbsent:
        rectify = self._config.rectify
        assert rectify is not None
        body: dict[str, Any] = {}
        for each in corrections:
            if each.column in rectify.fields:
                body = _merged(body, _nested(rectify.fields[each.column], each.value))
        reply = await self._call(rectify, ref, key, _idempotent(key), body=body)
        if reply.status in self._config.gone:
            return AlreadyAbsent(status_code=reply.status)
        if 200 <= reply.status <= 299:
            return Rectified(status_code=reply.status)
        raise failure(reply)


def from_config(name: str, config: dict[str, Any], limits: Limits) -> Any:
    """The resolver that a block of resolvers.yaml describes, with the abilities it describes."""
    settings = validate(HttpConfig, config)
    abilities: list[type[HttpSystem]] = [HttpResolver]
    if settings.expires:
        abilities = [ExpiringHttp]
    elif settings.scheduled and settings.verify:
        abilities = [LaterHttp]
    elif settings.verify:
        abilities.append(VerifyingHttp)
    if settings.rectify is not None:
        abilities.append(RectifyingHttp)
    return type("HttpResolver", tuple(abilities), {})(name, settings, limits)


def _idempotent(key: UUID) -> dict[str, str]:
    return {"Idempotency-Key": str(key)}


def _nested(path: str, value: Any) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    return {first: _nested(rest, value) if rest else value}


def _merged(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Both, with what `right` says where they meet."""
    merged = dict(left)
    for name, value in right.items():
        old = merged.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[name] = _merged(old or {}, value) if both else value
    return merged
