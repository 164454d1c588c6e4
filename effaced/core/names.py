"""Which names are allowed for resolvers and for kinds of references."""

from __future__ import annotations

from effaced.core.errors import ConfigurationError

# A breaker's name is `resolver:` or `host:` before the name, in 255 characters.
LONGEST = 255 - len("resolver:")
LONGEST_KIND = 64


def name_problem(what: str, name: str, longest: int = LONGEST) -> str | None:
    """Why a database can't store this name or people can't read it; None if it is fine."""
    if name.strip() and len(name) <= longest and name.isprintable():
        return None
    return f"{what} must have 1 to {longest} characters, all of them printable."


def resolver_name_problem(name: str) -> str | None:
    if name == "*":
        return "A resolver can't be named '*': that stands for all of them."
    return name_problem("A resolver's name", name)


def raise_problem(problem: str | None) -> None:
    """Raise ConfigurationError if there is a problem."""
    if problem is not None:
        raise ConfigurationError(problem)
