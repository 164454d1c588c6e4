"""Structured logs that can be kept: ids, names and counts; never a person's data."""

from __future__ import annotations

import logging
import re
import sys
import traceback
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from structlog.typing import EventDict, WrappedLogger

_SECRET = re.compile(
    r"(pass(word)?|secret(_?key)?|token|authorization|cookie|api_?key|key|e?mail(_?address)?|phone(_?number)?|"
    r"address|subject(_?id)?|ref|value|identifier|correction|payload|body)(e?s)?$",
    re.IGNORECASE,
)
# One pass over the text: each match is a whole word, and `_without_address` looks into it.
_WORD = re.compile(r"[^\s<>\"']+")
_BEARER = re.compile(r"(?i)bearer\s+\S+")
_URL_LOGIN = re.compile(r"(?<=://)[^/\s]+@")
_QUERY = re.compile(r"(?<=[?&])([^=?&\s]+)=[^&\s]+")
REDACTED = "[redacted]"
# One list for good: a logger keeps the one it was first used with, however often logging is set up.
_processors: list[Any] = []


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Blank out what keys or shapes give away as personal or secret."""
    return {key: REDACTED if _SECRET.search(key) else _clean(value) for key, value in event.items()}


def exception_without_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """An exception as class name and code places: messages may quote what a person typed."""
    info = event.pop("exc_info", None)
    error = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        event["trace"] = [
            f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)[-8:]
        ]
    return event


def configure(level: str = "info", fmt: str = "json") -> None:
    """Set up logging once per process, for structlog and for the standard library's loggers alike."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        exception_without_values,
        redact,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if fmt == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    _processors[:] = [*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter]
    structlog.configure(
        processors=_processors,
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("httpx", "httpcore", "alembic", "rq.worker", "rq.job", "rq.queue"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(name)
    return logger


def _without_address(word: re.Match[str]) -> str:
    text = word[0]
    at = text.find("@", 1)
    return REDACTED if at > 0 and "." in text[at + 2 : -1] else text


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        text = _QUERY.sub(rf"\1={REDACTED}", _BEARER.sub(REDACTED, _URL_LOGIN.sub(f"{REDACTED}@", value)))
        return _WORD.sub(_without_address, text) if "@" in text else text
    if isinstance(value, BaseException):
        return type(value).__name__
    if isinstance(value, dict):
        return {key: REDACTED if _SECRET.search(str(key)) else _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    if value is None or isinstance(value, bool | int | float | UUID | datetime):
        return value
    return _clean(str(value))
