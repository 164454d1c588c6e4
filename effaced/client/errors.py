"""What a call can end with instead of an answer. No error holds what was sent, nor the API key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TYPE = "urn:effaced:problem:"
_FIRST_SERVER_ERROR = 500


class ClientError(Exception):
    """The base of everything that this package raises."""


class NetworkError(ClientError):
    """No answer came, after all retries. Whether the call has had an effect is not known."""


class UnexpectedAnswer(ClientError):
    """A success that is not what the API answers: is `base_url` that of effaced?"""


class WebhookRefused(ClientError):
    """A message whose signature does not hold, or that is too old. Answer it with 401 and do nothing."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong: where, a code for programs, and a message for people."""

    field: str
    code: str
    message: str


class ApiError(ClientError):
    """The API has refused. `code` is the type of problem, such as `refused` or `rate-limited`."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.code = str(problem.get("type", "unknown")).removeprefix(_TYPE)
        self.title = str(problem.get("title", f"HTTP {status}"))
        self.detail = str(problem.get("detail", ""))
        self.documentation = _text(problem.get("documentation"))
        self.trace_id = _text(problem.get("trace_id"))
        self.retry_after = retry_after
        self.errors = tuple(_field_errors(problem.get("errors")))
        fields = "; ".join(f"{each.field} {each.message}" for each in self.errors)
        said = " ".join(part for part in (self.detail or self.title, fields) if part)
        traced = f" (trace_id {self.trace_id})" if self.trace_id else ""
        super().__init__(f"{status} {self.code}: {said}{traced}")


class Unauthenticated(ApiError):
    """401: no API key, or one that is not known or was revoked."""


class Forbidden(ApiError):
    """403: the API key lacks the scope."""


class NotFound(ApiError):
    """404: there is no such thing, or not for this key."""


class Conflict(ApiError):
    """409: it contradicts the present state, or the Idempotency-Key belongs to another call."""


class Refused(ApiError):
    """400, 413, 415 or 422: something that was sent is wrong; `errors` names the fields."""


class RateLimited(ApiError):
    """429: too many calls; `retry_after` says in how many seconds to come back."""


class ServerError(ApiError):
    """500 and above: an error in effaced, or something it needs does not answer."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Refused,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Refused,
    415: Refused,
    422: Refused,
    429: RateLimited,
}


def api_error(status: int, problem: object, retry_after: float | None) -> ApiError:
    """The error of this status. A proxy's answers are no problem details, and are errors as well."""
    family = _BY_STATUS.get(status, ServerError if status >= _FIRST_SERVER_ERROR else ApiError)
    return family(status, problem if isinstance(problem, Mapping) else {}, retry_after)


def _field_errors(listed: object) -> list[FieldError]:
    entries = listed if isinstance(listed, list) else []
    return [
        FieldError(str(each.get("field", "")), str(each.get("code", "")), str(each.get("message", "")))
        for each in entries
        if isinstance(each, Mapping)
    ]


def _text(value: object) -> str | None:
    return None if value is None else str(value)
