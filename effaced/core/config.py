"""Settings: the environment (`EFFACED_*`) over `effaced.toml` over defaults.

A wrong value stops effaced at start with the key's name and what is allowed. The value itself is never
shown: it may be a password.
"""

from __future__ import annotations

import os
import re
import tomllib
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from effaced.core import retry_defaults as defaults
from effaced.core.crypto import Keyring
from effaced.core.db import parse_url
from effaced.core.db.transactions import BATCH_ROWS
from effaced.core.errors import ConfigurationError, Problem
from effaced.model import DeadLetterDomain

Network = IPv4Network | IPv6Network
PREFIX = "EFFACED_"
# Variables of this prefix that are not settings: where the settings file is, and what tests and the demo use.
_OTHER = ("EFFACED_CONFIG", "EFFACED_TEST_", "EFFACED_DEMO_", "EFFACED_EXAMPLES", "EFFACED_CHROMIUM")
# Asking walks through all zone files; they don't change while we run.
_zones = cache(available_timezones)


class Settings(BaseSettings):
    """Everything that can be set."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True, env_ignore_empty=True
    )

    database_url: str = Field(
        "sqlite:///var/effaced.db", description="PostgreSQL or SQLite, where the company's data is"
    )
    redis_url: str | None = Field(None, description="Redis or Valkey for the workers' doorbell")
    keys: SecretStr = Field(description="id:key[,id:key...], newest first; `effaced keys new` makes one")
    datamap: Path = Field(Path("datamap.yaml"), description="the data map")
    resolvers: Path = Field(Path("resolvers.yaml"), description="the external systems")
    notify: Path | None = Field(None, description="who is told of what; nobody, if not set")
    breakers: Path | None = Field(None, description="when breakers open; the built-in policy, if not set")
    breaker_overrides: str = Field("", description="changes to it, e.g. resolvers.crm.fail_max=3, ...")
    breaker_store: Literal["sql", "redis"] = Field("sql", description="where breakers are kept")
    breaker_redis_url: str | None = Field(None, description="Redis for breakers, if not the doorbell's")

    allow_private_targets: Annotated[tuple[Network, ...] | None, NoDecode] = Field(
        None, description="private networks that targets registered over the API may be in; none, if not set"
    )

    api_calls_per_minute: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        600, description="how many calls an API key may make in a minute; 0 for any number"
    )
    max_body_bytes: Annotated[int, Field(ge=1_024, le=16_777_216)] = 262_144
    secure_cookies: bool = Field(True, description="send cookies over HTTPS only")
    session_hours: Annotated[int, Field(ge=1, le=72)] = 10
    time_zone: str = Field("UTC", description="in which deadlines end and pages show times")
    metrics_token: SecretStr | None = Field(None, description="what Prometheus sends to read /metrics")
    client_address_header: str | None = Field(
        None, description="the header in which your proxy puts the client's address"
    )
    spool_dir: Path | None = Field(None, description="where exports are written before they are sent")
    public_url: str | None = Field(None, description="where people reach the console, for links in e-mails")

    lease_seconds: Annotated[int, Field(ge=10, le=3_600)] = defaults.LEASE_SECONDS
    sweep_seconds: Annotated[float, Field(ge=0.2, le=600)] = 10
    batch_rows: Annotated[int, Field(ge=100, le=1_000_000)] = BATCH_ROWS
    batch_size: Annotated[int, Field(ge=1, le=1_000)] = defaults.BATCH_SIZE
    max_attempts: Annotated[int, Field(ge=1, le=50)] = defaults.MAX_ATTEMPTS
    crash_limit: Annotated[int, Field(ge=1, le=20)] = defaults.CRASH_LIMIT
    backoff_seconds: Annotated[float, Field(ge=0.05, le=3_600)] = defaults.BASE_DELAY_SECONDS
    backoff_cap_seconds: Annotated[float, Field(ge=1, le=86_400)] = defaults.MAX_DELAY_SECONDS
    max_age_days: Annotated[int, Field(ge=1, le=90)] = defaults.MAX_AGE_DAYS
    drain_seconds: Annotated[int, Field(ge=1, le=600)] = 15
    dead_letter_hours: Annotated[dict[DeadLetterDomain, float] | None, NoDecode] = Field(
        None, description="how long dead letters may wait, e.g. local_execution=2, message=48"
    )

    retention_erase: Literal["by_officer", "on_schedule"] = Field(
        "by_officer", description="who erases what need not be retained any more"
    )

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "text"] = "json"

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        try:
            parse_url(value)
        except ConfigurationError as error:
            raise ValueError(error.message.partition(": ")[2]) from None
        return value

    @field_validator("redis_url", "breaker_redis_url")
    @classmethod
    def _known_redis(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            known = value.startswith(("redis://", "rediss://", "unix://")) and urlsplit(value).port != 0
        except ValueError:  # the port is no number
            known = False
        if not known:
            raise ValueError("expected redis://host:port/number, rediss://... or unix:///path")
        return value

    @field_validator("client_address_header")
    @classmethod
    def _usable_header(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,63}", value):
            raise ValueError("expected the name of a header, such as X-Real-IP")
        return value

    @field_validator("public_url")
    @classmethod
    def _usable_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            parts = urlsplit(value)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or parts.username or parts.query or parts.fragment or re.search(r"[^!-~]", value):
            raise ValueError("expected https://host, with a path if need be and nothing after it")
        return value.rstrip("/")

    @field_validator("dead_letter_hours", mode="before")
    @classmethod
    def _known_waits(cls, value: object) -> object:
        """A table in the file, or `domain=hours` with commas between them."""
        if value is None:
            return None
        parts = [part.partition("=") for part in value.split(",")] if isinstance(value, str) else []
        given = {name.strip(): hours.strip() for name, _, hours in parts} if parts else value
        if not isinstance(given, dict) or len(parts) > len(given):
            raise ValueError("expected domain=hours with commas between them, each domain once")
        if set(given) - set(DeadLetterDomain):
            raise ValueError(f"expected domain=hours for any of {', '.join(DeadLetterDomain)}")
        try:
            waits = {name: float(hours) for name, hours in given.items()}
        except (TypeError, ValueError):
            waits = {"": 0.0}
        if not all(0 < hours <= 8_760 for hours in waits.values()):
            raise ValueError("expected a number of hours above 0, up to 8760, for each domain")
        return waits

    @field_validator("allow_private_targets", mode="before")
    @classmethod
    def _known_networks(cls, value: object) -> object:
        """A list in the file, or networks with commas between them."""
        if value is None:
            return None
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise ValueError("expected networks such as 10.1.0.0/16, with commas between them")
        try:
            return tuple(ip_network(str(part).strip()) for part in parts if str(part).strip())
        except ValueError:
            said = "expected networks such as 10.1.0.0/16 or fd00:1::/32, with commas between them"
            raise ValueError(said) from None

    @field_validator("metrics_token")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not re.fullmatch(r"[!-~]{16,}", value.get_secret_value()):
            raise ValueError("must have at least 16 visible ASCII characters")
        return value

    @field_validator("keys")
    @classmethod
    def _usable_keys(cls, value: SecretStr) -> SecretStr:
        try:
            Keyring.parse(value.get_secret_value())
        except ConfigurationError as error:
            raise ValueError(error.message.partition(": ")[2]) from None
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value not in _zones():
            raise ValueError("expected an IANA name such as Europe/Berlin")
        return value

    @model_validator(mode="after")
    def _delays_fit(self) -> Settings:
        if self.backoff_seconds > self.backoff_cap_seconds:
            raise ValueError("EFFACED_BACKOFF_SECONDS must be at most EFFACED_BACKOFF_CAP_SECONDS")
        return self

    @property
    def keyring(self) -> Keyring:
        return Keyring.parse(self.keys.get_secret_value())

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=self.lease_seconds)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, _file())


def _file() -> Path:
    return Path(os.environ.get("EFFACED_CONFIG") or "effaced.toml")


def load_settings(**overrides: Any) -> Settings:
    """Read the settings, or raise ConfigurationError with every problem at once."""
    named = os.environ.get("EFFACED_CONFIG")
    if named and not Path(named).is_file():
        raise ConfigurationError("EFFACED_CONFIG names a file that does not exist.")
    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = [_problem(detail) for detail in error.errors(include_input=False, include_url=False)]
        raise ConfigurationError("effaced can't start with these settings:", problems=problems) from None
    except ValueError as error:  # the TOML itself does not parse; its message names line and column only
        raise ConfigurationError(f"{_file()}: {error}") from None


def is_set(name: str) -> bool:
    """Whether somebody has given this setting a value, in the environment or in the file."""
    if os.environ.get(f"{PREFIX}{name.upper()}"):
        return True
    path = _file()
    try:
        return name in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False  # load_settings says what is wrong with it


def unknown_variables(environ: dict[str, str]) -> list[str]:
    """Variables that look like settings and are not: most often a typing error."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    strangers = [
        name
        for name in environ
        if name.startswith(PREFIX) and name not in known and not name.startswith(_OTHER)
    ]
    return [
        f"{name} is not a setting"
        + (f"; did you mean {close[0]}?" if (close := get_close_matches(name, known, 1)) else ".")
        for name in sorted(strangers)
    ]


def _problem(detail: ErrorDetails) -> Problem:
    name = ".".join(str(part) for part in detail["loc"])
    where = f"{PREFIX}{name.upper()}"
    if detail["type"] == "missing":
        return Problem(
            where, "is not set. `effaced keys new` makes a key." if name == "keys" else "is not set"
        )
    if detail["type"] == "extra_forbidden":
        close = get_close_matches(name, Settings.model_fields, 1)
        return Problem(
            f"{_file()}: {name}", "is not a setting" + (f"; did you mean {close[0]}?" if close else "")
        )
    return Problem(where if name else "", detail["msg"].removeprefix("Value error, "))
