"""Where a personal value shows: in an exception and what hangs on to it, in logs, in what is printed."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

import pytest

# Shorter values turn up by chance in anything, so they count as whole words only.
_DISTINCT = 6


def shows(text: str, value: str) -> bool:
    """Whether the value is in the text, as it is or as a URL, JSON or a repr would write it."""
    escaped = json.dumps(value)[1:-1], repr(value)[1:-1]
    forms = {value, quote(value, safe=""), quote(value), quote_plus(value), *escaped} - {""}
    around = (r"(?<!\w)", r"(?!\w)") if len(value) < _DISTINCT else ("", "")
    return any(re.search(around[0] + re.escape(form) + around[1], text, re.IGNORECASE) for form in forms)


def places_in(error: BaseException, value: str) -> list[str]:
    """Where the exception, or one that is shown with it, holds the value."""
    return [
        f"{type(each).__name__}: {place}"
        for each in _exception_chain(error)
        for place, text in _texts(each)
        if shows(text, value)
    ]


def _exception_chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, its causes and contexts, and the members of groups, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        # `raise ... from None` says that the context is not to be shown, and nothing shows it.
        waiting += [each.__cause__, None if each.__suppress_context__ else each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def _texts(error: BaseException) -> Iterator[tuple[str, str]]:
    yield "str()", str(error)
    yield "repr()", repr(error)
    for number, each in enumerate(error.args):
        yield f"args[{number}]", f"{each!s} {each!r}"
    for name, each in vars(error).items():  # notes are among them
        yield name, f"{each!s} {each!r}"


class Listener:
    """What is logged, at any level, and printed during a test."""

    def __init__(self, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
        self._caplog, self._capsys = caplog, capsys
        caplog.set_level(logging.DEBUG)

    def forget(self) -> None:
        """Begin anew: what was said so far was not the resolver's doing."""
        self._caplog.clear()
        self._capsys.readouterr()

    def heard(self, *values: str, ignore: Iterable[str]) -> list[str]:
        """Where one of the values was said. The loggers named in `ignore`, and those below, don't count."""
        names = tuple(ignore)
        said = [
            (f"the logger {each.name} at {each.levelname}", _logged(each))
            for each in self._caplog.records
            if not any(f"{each.name}.".startswith(f"{name}.") for name in names)
        ]
        said.append(("stdout", self._capsys.readouterr().out))
        return [place for place, text in said if any(shows(text, value) for value in values)]


_USUAL = frozenset(vars(logging.makeLogRecord({}))) - {"msg", "args"}


def _logged(record: logging.LogRecord) -> str:
    own = {name: each for name, each in vars(record).items() if name not in _USUAL}
    error = record.exc_info[1] if record.exc_info else None
    told = [] if error is None else [text for each in _exception_chain(error) for _, text in _texts(each)]
    return "\n".join([record.getMessage(), repr(own), *told])
