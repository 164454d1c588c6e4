"""Systems that send requests over the API and get messages about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from receivers import Receiver
from werkzeug.test import TestResponse

from effaced.accounts.scopes import Scope

if TYPE_CHECKING:
    from tests.integration.api.conftest import Api

TARGETS = "/api/v1/message-targets"
STAGES = ["request.received", "request.approved", "request.executed", "request.completed"]
MESSAGES = (Scope.REQUESTS_READ, Scope.REQUESTS_WRITE, Scope.MESSAGES_READ, Scope.MESSAGES_WRITE)


@dataclass
class Integrator:
    """A system with an API key, and where its messages arrive."""

    api: Api
    token: str
    receiver: Receiver

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> TestResponse:
        options = {} if body is None else {"json": body}
        sent = {**self.api.headers(self.token), **headers}
        return self.api.app.test_client().open(f"{TARGETS}{path}", method=method, headers=sent, **options)

    def post(self, path: str = "", body: Any = None, **headers: str) -> TestResponse:
        return self.call("POST", path, body, **headers)

    def get(self, path: str = "") -> Any:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    def register(self, events: Sequence[str] = ("request.completed",), **more: Any) -> dict[str, Any]:
        asked = {"name": "shop", "url": self.receiver.url, "events": list(events), **more}
        answer = self.post(body=asked)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.get_json()
        return made

    def ask(self, subject_id: str = "1", **more: Any) -> dict[str, Any]:
        answer = self.api.post(self.api.erasure(subject_id, **more), token=self.token)
        assert answer.status_code in (200, 201), answer.text
        asked: dict[str, Any] = answer.get_json()
        return asked

    def told(self, request: dict[str, Any] | None = None) -> list[str]:
        """The types of the messages that have arrived, about this request."""
        bodies = [post.json() for post in self.receiver.posts]
        return [
            each["type"] for each in bodies if request is None or each["data"]["request_id"] == request["id"]
        ]


def deliver(api: Api) -> int:
    return asyncio.run(api.runtime.deliverer().run())


def drain(api: Api) -> None:
    asyncio.run(api.runtime.runner().drain("crm"))


Join = Callable[..., Integrator]
