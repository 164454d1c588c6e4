"""Error families. A message is for the person who can fix it and never holds a personal value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where: a field, a file and line, a table and column.

    `code` is for programs and never changes its meaning; most problems are read by people only.
    """

    where: str
    message: str
    code: str = "invalid"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class EffacedError(Exception):
    """The base of everything effaced raises on purpose."""

    def __init__(self, message: str, *, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.problems = tuple(problems)

    def __str__(self) -> str:
        if not self.problems:
            return self.message
        return "\n".join([self.message, *(f"  {problem}" for problem in self.problems)])


class Refused(EffacedError):
    """The input or a rule says no; the same call will be refused again."""


class Conflict(EffacedError):
    """Somebody else got there first, or the thing is in another state than the call needs."""


class NotFound(EffacedError):
    """There is no such thing."""


class Unavailable(EffacedError):
    """Something effaced depends on does not answer; the same call may succeed later."""


class SchemaMismatch(Unavailable):
    """This process's code does not fit the database's schema: it must not read or write there."""


class ConfigurationError(EffacedError):
    """A setting or a configuration file is wrong; effaced does not start with it."""


class ResolverError(EffacedError):
    """A resolver's permanent failure: trying again cannot help, so the entry is abandoned.

    `code` is a short machine word such as `http_400`; it is stored, the message is not.
    """

    def __init__(self, message: str, *, code: str = "permanent") -> None:
        super().__init__(message)
        self.code = code
