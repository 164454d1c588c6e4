"""What resolvers.yaml says about another database that is erased in by a data map of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator
from sqlalchemy.engine import URL

from effaced.core.db import parse_url
from effaced.core.errors import ConfigurationError
from effaced.resolvers.settings import Strict


def _check_database_url(url: SecretStr) -> SecretStr:
    known = True
    try:
        parse_url(url.get_secret_value())
    except ConfigurationError:
        known = False
    if not known:
        raise ValueError("expected postgresql://user:password@host/name or sqlite:////path/to/file.db")
    return url


class SqlConfig(Strict):
    """The whole block of a resolver of kind `sql`, without the keys all kinds share."""

    url: Annotated[SecretStr, AfterValidator(_check_database_url)]
    map: str = Field(min_length=1)
    subject: str | None = Field(default=None, min_length=1)
    find_by: str | None = Field(default=None, min_length=1)
    ignore_case: bool = False
    several: Literal["refuse", "all"] = "refuse"
    hashes: Literal["apart", "alike"] = "apart"
    ledger: bool = True
    lock_timeout: float = Field(default=5, gt=0, le=600, allow_inf_nan=False)

    @model_validator(mode="after")
    def _require_find_by(self) -> SqlConfig:
        if self.find_by is None and (self.ignore_case or self.several == "all"):
            raise ValueError("ignore_case and several are for find_by, which is not there")
        return self

    @property
    def parsed(self) -> URL:
        return parse_url(self.url.get_secret_value())
