"""The two clients: what is set once, and the resources."""

from __future__ import annotations

from types import TracebackType

import httpx

from effaced.client.exchange import Retry
from effaced.client.resources import Resources
from effaced.client.runners import Awaiting, Blocking

_TIMEOUT = 30.0
_PRINTABLE = range(0x21, 0x7F)


class Client(Resources[Blocking]):
    """Calls the API and waits for the answers. Threads may share one. Close it, or use it with `with`."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = _TIMEOUT,
        retry: Retry = Retry(),  # noqa: B008 - it is frozen
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`timeout` is that of each attempt, in seconds; `transport` is for proxies and certificates."""
        self._http = httpx.Client(
            base_url=_checked_url(base_url), headers=_headers(api_key), timeout=timeout, transport=transport
        )
        super().__init__(Blocking(self._http, retry))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(Resources[Awaiting]):
    """The same for asyncio: methods are awaited, lists are for `async for`."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = _TIMEOUT,
        retry: Retry = Retry(),  # noqa: B008 - it is frozen
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=_checked_url(base_url), headers=_headers(api_key), timeout=timeout, transport=transport
        )
        super().__init__(Awaiting(self._http, retry))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _checked_url(base_url: str) -> str:
    url = httpx.URL(base_url)
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise ValueError("base_url must be https://host, with a path if effaced has one, and nothing more")
    return base_url


def _headers(api_key: str) -> dict[str, str]:
    # httpx would name the value in its error.
    if not api_key or not all(ord(character) in _PRINTABLE for character in api_key):
        raise ValueError("api_key must be visible ASCII characters; is there a line end in it?")
    return {"Authorization": f"Bearer {api_key}"}
