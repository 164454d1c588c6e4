"""Operations: each is declared once, and the routes, the rights and the OpenAPI document come from that.

    routes = Routes("Requests", "/api/v1/requests", about="What people ask for.")

    @routes.get("/<request_id>", scope=Scope.REQUESTS_READ)
    def get_request(call: Call, request_id: str, query: RequestQuery) -> models.Request:
        \"\"\"One request.\"\"\"

The function's parameters say what it takes: parts of the path by name, `query` and `body` as models. What it
returns is the answer's model, or a Reply of one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict, TypeVar, Unpack, get_args, get_origin, get_type_hints

from effaced.accounts.scopes import Scope
from effaced.api.models import Answer, Body, Query
from effaced.api.operations.call import Reply

F = TypeVar("F", bound=Callable[..., Any])
_IN_PATH = re.compile(r"<(?:(\w+):)?(\w+)>")


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path, and all that is to be known of it."""

    id: str
    method: str
    rule: str
    """As Flask writes it."""
    tag: str
    scopes: tuple[Scope, ...]
    """Any of these will do; without any, every key may."""
    view: Callable[..., Any]
    body: type[Body] | None
    query: type[Query] | None
    answer: type[Answer] | None
    status: int
    also: Mapping[int, str]
    """Other successes, and when they come."""
    sandbox: bool
    """Whether sandbox keys may call it."""
    secrets: tuple[str, ...]
    """Fields of the answer, such as `token` or `pause.reason`, that are not kept: a repeated call is answered
    without them. What is shown once, and what can be erased later."""
    media_types: tuple[str, ...]
    """Of an answer that is a file: any of these."""
    errors: Mapping[int, str]
    """Errors of this operation besides those that its kind has, and when they come."""

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def path(self) -> str:
        """As OpenAPI writes it."""
        return _IN_PATH.sub(r"{\2}", self.rule)

    @property
    def path_names(self) -> tuple[str, ...]:
        return tuple(name for _, name in _IN_PATH.findall(self.rule))

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.view) or "").partition("\n")[0].rstrip(".")

    @property
    def description(self) -> str:
        return (inspect.getdoc(self.view) or "").partition("\n")[2].strip()


class Options(TypedDict):
    """What a decorator of Routes takes besides the path. The fields are Operation's."""

    scope: Scope | tuple[Scope, ...] | None
    status: NotRequired[int]
    also: NotRequired[Mapping[int, str]]
    sandbox: NotRequired[bool]
    secrets: NotRequired[tuple[str, ...]]
    media_type: NotRequired[str | tuple[str, ...]]
    errors: NotRequired[Mapping[int, str]]


@dataclass(slots=True)
class Routes:
    """The operations of one resource."""

    tag: str
    prefix: str
    about: str
    operations: list[Operation] = field(default_factory=list)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def get(self, rule: str = "", **options: Unpack[Options]) -> Callable[[F], F]:
        return self._operation("GET", rule, options)

    def post(self, rule: str = "", **options: Unpack[Options]) -> Callable[[F], F]:
        return self._operation("POST", rule, options)

    def put(self, rule: str = "", **options: Unpack[Options]) -> Callable[[F], F]:
        return self._operation("PUT", rule, options)

    def delete(self, rule: str = "", **options: Unpack[Options]) -> Callable[[F], F]:
        return self._operation("DELETE", rule, options)

    def _operation(self, method: str, rule: str, options: Options) -> Callable[[F], F]:
        scope, media_type = options["scope"], options.get("media_type", ())

        def declare(view: F) -> F:
            hints = get_type_hints(view)
            self.operations.append(
                Operation(
                    id=view.__name__,
                    method=method,
                    rule=f"{self.prefix}{rule}",
                    tag=self.tag,
                    scopes=(scope,) if isinstance(scope, Scope) else scope or (),
                    view=view,
                    body=hints.get("body"),
                    query=hints.get("query"),
                    answer=_answer_model(hints["return"]),
                    status=options.get("status", 200),
                    also=dict(options.get("also", {})),
                    sandbox=options.get("sandbox", False),
                    secrets=options.get("secrets", ()),
                    media_types=(media_type,) if isinstance(media_type, str) else media_type,
                    errors=dict(options.get("errors", {})),
                )
            )
            return view

        return declare


def _answer_model(hint: Any) -> type[Answer] | None:
    if get_origin(hint) is Reply:
        (hint,) = get_args(hint)
    return hint if isinstance(hint, type) and issubclass(hint, Answer) else None
