"""What resolvers.yaml says about a system that is reached over HTTP."""

from __future__ import annotations

import base64
import re
from typing import Annotated, Any, Literal

import httpx
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, field_validator, model_validator

from effaced.resolvers.http.templates import check_path, check_template, uses_ref
from effaced.resolvers.settings import Strict

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_OURS = {"host", "content-length", "content-type", "transfer-encoding", "connection", "idempotency-key"}
# These always mean trouble with the call itself, so they can't say anything about a person.
_TROUBLE = {401, 403, 408, 429}


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _meaningful(status: int) -> int:
    if status in _TROUBLE or not (200 <= status <= 299 or 400 <= status <= 499):
        raise ValueError("only 2xx and 4xx can be declared, and of these not 401, 403, 408 and 429")
    return status


def _header_safe(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not text or not text.isascii() or not text.isprintable() or text != text.strip():
        raise ValueError(
            "must be printable ASCII without spaces around it (a line break at the end of a secret, perhaps?)"
        )
    return secret


def _json_template(value: Any) -> Any:
    if isinstance(value, dict):
        for each in value.values():
            _json_template(each)
    elif isinstance(value, list):
        for each in value:
            _json_template(each)
    elif isinstance(value, str):
        check_template(value)
    elif value is not None and not isinstance(value, int | float):
        raise ValueError("can hold texts, numbers, true, false, null, lists and mappings")
    return value


Status = Annotated[int, AfterValidator(_meaningful)]
Statuses = Annotated[frozenset[Status], Field(min_length=1)]
HeaderValue = Annotated[SecretStr, AfterValidator(_header_safe)]
Text = Annotated[str, AfterValidator(check_template)]


class Call(Strict):
    """One HTTP call: {ref} is the subject's reference, {key} the entry's id."""

    path: Annotated[str, AfterValidator(check_path)]
    query: dict[str, Text] = Field(default_factory=dict)
    body: Annotated[Any, AfterValidator(_json_template)] = Field(default=None, alias="json")

    @model_validator(mode="after")
    def _requires_ref(self) -> Call:
        if not any(uses_ref(part) for part in (self.path, self.query, self.body)):
            raise ValueError("{ref} must stand in path, query or json: a call has to name its subject")
        return self


class EraseCall(Call):
    """The call that erases."""

    method: Annotated[Literal["DELETE", "POST", "PUT", "PATCH"], BeforeValidator(_upper)]


class VerifyCall(Call):
    """The call that looks whether somebody is still there; it never deletes."""

    method: Annotated[Literal["GET", "HEAD", "POST"], BeforeValidator(_upper)] = "GET"
    absent: Statuses
    present: Statuses

    @model_validator(mode="after")
    def _decides(self) -> VerifyCall:
        if self.absent & self.present:
            raise ValueError("a status can't be both under absent and under present")
        return self


class RectifyCall(Strict):
    """The call that corrects: `fields` says under which name (dots for nesting) each category is sent."""

    method: Annotated[Literal["PATCH", "PUT", "POST"], BeforeValidator(_upper)] = "PATCH"
    path: Annotated[str, AfterValidator(check_path)]
    query: dict[str, Text] = Field(default_factory=dict)
    fields: dict[str, Annotated[str, Field(min_length=1)]] = Field(min_length=1)
    body: Annotated[dict[str, Any] | None, AfterValidator(_json_template)] = Field(default=None, alias="json")

    @model_validator(mode="after")
    def _requires_ref(self) -> RectifyCall:
        if not any(uses_ref(part) for part in (self.path, self.query, self.body)):
            raise ValueError("{ref} must stand in path, query or json: a call has to name its subject")
        return self


class ScheduledAnswer(Strict):
    """Which statuses mean "later", and when: a JSON field (dots for nesting), or so many seconds on.

    `until` is for a system that names a date, `every` for one that works at it and is to be asked again.
    `repeat: false` is for a system in which a second call starts the period again: after the first call
    only the read-back is repeated.
    """

    status: Statuses
    until: str | None = Field(default=None, min_length=1)
    every: float | None = Field(default=None, ge=1, le=90 * 86_400, allow_inf_nan=False)
    repeat: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> ScheduledAnswer:
        if (self.until is None) == (self.every is None):
            raise ValueError("expected exactly one of until, every")
        return self


class Expiry(Strict):
    """A system that can't be told to delete: what is not renewed there is gone after so many days."""

    within_days: float = Field(gt=0, le=3_650, allow_inf_nan=False)


class Basic(Strict):
    user: SecretStr
    password: SecretStr


class Header(Strict):
    name: str
    value: HeaderValue

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS:
            raise ValueError(f"must be a header name, and none of {', '.join(sorted(_OURS))}")
        return name


class Auth(Strict):
    """How we show who we are: exactly one of the three."""

    bearer: HeaderValue | None = None
    basic: Basic | None = None
    header: Header | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Auth:
        if sum(way is not None for way in (self.bearer, self.basic, self.header)) != 1:
            raise ValueError("expected exactly one of bearer, basic, header")
        return self

    def headers(self) -> dict[str, str]:
        if self.bearer is not None:
            return {"Authorization": f"Bearer {self.bearer.get_secret_value()}"}
        if self.basic is not None:
            user, password = self.basic.user.get_secret_value(), self.basic.password.get_secret_value()
            return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
        assert self.header is not None
        return {self.header.name: self.header.value.get_secret_value()}


class HttpConfig(Strict):
    """The whole block of a resolver of kind `http`, without the keys all kinds share."""

    base_url: str
    erase: EraseCall | None = None
    expires: Expiry | None = None
    rectify: RectifyCall | None = None
    auth: Auth | None = None
    gone: frozenset[Status] = frozenset()
    scheduled: ScheduledAnswer | None = None
    verify: VerifyCall | None = None

    @field_validator("base_url")
    @classmethod
    def _a_place(cls, text: str) -> str:
        try:
            url = httpx.URL(text)
        except httpx.InvalidURL:
            raise ValueError("expected a URL such as https://api.example") from None
        if url.scheme not in ("http", "https") or not url.host or re.search(r"[{}\\\s]", text):
            raise ValueError("expected a URL such as https://api.example")
        if url.userinfo or url.query or url.fragment or "?" in text or "#" in text:
            raise ValueError("can't hold a user, a query or a fragment; see `auth` and `query`")
        return text.rstrip("/")

    @model_validator(mode="after")
    def _unambiguous(self) -> HttpConfig:
        if self.scheduled and self.gone & self.scheduled.status:
            raise ValueError("a status can't be both under gone and under scheduled.status")
        if self.scheduled and self.scheduled.every and self.verify is None:
            raise ValueError("scheduled.every needs verify, to see when the data is gone")
        if self.scheduled and not self.scheduled.repeat and self.verify is None:
            raise ValueError("scheduled.repeat: false needs verify, to see when the data is gone")
        if (self.erase is None) == (self.expires is None):
            raise ValueError("expected exactly one of erase, expires")
        if self.expires and (self.verify is None or self.scheduled):
            raise ValueError("expires needs verify, to see when the data is gone, and takes no scheduled")
        return self
