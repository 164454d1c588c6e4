"""Doing what `exchange` says: blocking, or with asyncio. A resource's methods are declared once for both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import httpx

from effaced.client.answers import Answer, Listed
from effaced.client.errors import UnexpectedAnswer
from effaced.client.exchange import Call, Listing, Result, Retry, exchange

P = ParamSpec("P")
T = TypeVar("T", bound=Answer | bytes | None)
L = TypeVar("L", bound=Answer)
I = TypeVar("I")  # noqa: E741 - an item
M = TypeVar("M", bound="Blocking | Awaiting")


class Blocking:
    """Runs calls with httpx.Client."""

    def __init__(self, http: httpx.Client, retry: Retry) -> None:
        self._http, self._retry = http, retry

    def run(self, call: Call[T]) -> T:
        steps = exchange(call, self._http.build_request, self._retry)
        result: Result = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as done:
                answer: T = done.value
                return answer
            if isinstance(step, httpx.Request):
                result = self._send(step)
            else:
                time.sleep(step)
                result = None

    def _send(self, request: httpx.Request) -> Result:
        try:
            return self._http.send(request)
        except httpx.RequestError as error:
            return error


class Awaiting:
    """Runs calls with httpx.AsyncClient."""

    def __init__(self, http: httpx.AsyncClient, retry: Retry) -> None:
        self._http, self._retry = http, retry

    async def run(self, call: Call[T]) -> T:
        steps = exchange(call, self._http.build_request, self._retry)
        result: Result = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as done:
                answer: T = done.value
                return answer
            if isinstance(step, httpx.Request):
                result = await self._send(step)
            else:
                await asyncio.sleep(step)
                result = None

    async def _send(self, request: httpx.Request) -> Result:
        try:
            return await self._http.send(request)
        except httpx.RequestError as error:
            return error


class Pages(Generic[L, I]):
    """A list: iterate over its items, or page by page with `pages()`."""

    def __init__(self, runner: Blocking, first: Call[L]) -> None:
        self._runner, self._first = runner, first

    def __iter__(self) -> Iterator[I]:
        for page in self.pages():
            yield from _items(page)

    def pages(self) -> Iterator[L]:
        call: Call[L] | None = self._first
        while call is not None:
            page = self._runner.run(call)
            yield page
            call = _following(call, page)


class AsyncPages(Generic[L, I]):
    """The same for `async for`."""

    def __init__(self, runner: Awaiting, first: Call[L]) -> None:
        self._runner, self._first = runner, first

    async def __aiter__(self) -> AsyncIterator[I]:
        async for page in self.pages():
            for item in _items(page):
                yield item

    async def pages(self) -> AsyncIterator[L]:
        call: Call[L] | None = self._first
        while call is not None:
            page = await self._runner.run(call)
            yield page
            call = _following(call, page)


def _items(page: Answer) -> list[Any]:
    return page.data if isinstance(page, Listed) else []


def _following(call: Call[L], page: L) -> Call[L] | None:
    after = page.next if isinstance(page, Listed) else None
    if after is None:
        return None
    if after == call.query.get("after"):
        raise UnexpectedAnswer(f"{call.operation}: a page names itself as the next one.")
    return replace(call, query={**call.query, "after": after})


class Resource(Generic[M]):
    """The operations of one resource, for one of the runners."""

    def __init__(self, runner: M) -> None:
        self.runner: M = runner


class operation(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that describes its call; calling it makes the call. Awaitable in an AsyncClient."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, resource: None, owner: object) -> operation[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Blocking], owner: object) -> Callable[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: object) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, resource: Any, owner: object) -> Any:
        if resource is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return resource.runner.run(self._describe(resource, *args, **kwargs))

        return update_wrapper(method, self._describe)


class listing(Generic[P, L, I]):  # noqa: N801 - a decorator
    """A method that describes the call for a list's first page; calling it gives an iterator over all."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Listing[L, I]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, resource: None, owner: object) -> listing[P, L, I]: ...
    @overload
    def __get__(self, resource: Resource[Blocking], owner: object) -> Callable[P, Pages[L, I]]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: object) -> Callable[P, AsyncPages[L, I]]: ...
    def __get__(self, resource: Any, owner: object) -> Any:
        if resource is None:
            return self
        pages = Pages if isinstance(resource.runner, Blocking) else AsyncPages

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return pages(resource.runner, self._describe(resource, *args, **kwargs))

        return update_wrapper(method, self._describe)
