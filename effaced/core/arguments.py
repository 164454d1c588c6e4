"""Checking what callers of the library hand in, by the types that its signatures state.

A wrong argument would otherwise be noticed deep inside, in words about something else, or by one of the two
databases only. Values are never repeated: they may be somebody's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import cache, wraps
from inspect import signature
from math import inf
from types import FunctionType, NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sqlalchemy.orm import Session, scoped_session

T = TypeVar("T", bound=Callable[..., Any])
_TEXT = (str, bytes, bytearray)
# What is as good as the stated type.
_ALSO: dict[object, tuple[type, ...]] = {
    float: (int,),
    tuple: (list,),
    frozenset: (set,),
    Session: (scoped_session,),
}


def checked(subject: T) -> T:
    """Have a function, or all public methods of a class, refuse arguments of a type they do not state."""
    if not isinstance(subject, type):
        return cast(T, _checking(subject, subject.__qualname__))
    for name, member in list(vars(subject).items()):
        if isinstance(member, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(subject, name, _checking(member, f"{subject.__name__}.{name}"))
    return subject


def require_positive(where: str, **values: float | timedelta | None) -> None:
    """Refuse numbers and times that are not above zero, by name. None is for whoever has a default."""
    for name, value in values.items():
        number = value.total_seconds() if isinstance(value, timedelta) else value
        if number is not None and not 0 < number < inf:
            raise ValueError(f"{where}: {name} must be greater than zero")


def _checking(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    parameters, called = signature(function), name.removesuffix(".__init__")

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs).arguments
        for argument, hint in _hints(function).items():
            if argument in given:
                require_type(f"{called}: {argument}", given[argument], hint)
        return function(*args, **kwargs)

    return call


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(function).items() if name != "return"}


def require_type(where: str, value: object, hint: Any) -> None:
    if not _is(value, hint):
        given = "None" if value is None else type(value).__name__
        raise TypeError(f"{where} must be {_words(hint)}, not {given}")
    # Of a union, the member whose container this is; what is in it is looked at one by one.
    for member in _members(hint):
        inner = get_args(member)
        if not isinstance(value, Collection) or not inner or not _is(value, member) or callable(value):
            continue
        if isinstance(value, Mapping) and len(inner) == 2:
            for key, each in value.items():
                require_type(f"a key of {where}", key, inner[0])
                require_type(f"{where}[{key!r}]", each, inner[1])
        elif not isinstance(value, Mapping):
            for number, each in enumerate(value):
                require_type(f"{where}[{number}]", each, inner[0])


def _is(value: object, hint: Any) -> bool:
    """Whether the value is of that type, whatever it contains."""
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if len(members := _members(hint)) > 1:
        return any(_is(value, each) for each in members)
    kind = get_origin(hint) or hint
    if kind is Callable:
        return callable(value)
    if isinstance(value, bool) and kind in (int, float):
        return False
    if isinstance(value, _TEXT) and get_args(hint):
        return False  # a text is a collection of its letters, which nobody means
    if getattr(kind, "_is_protocol", False) and isinstance(value, type):
        return False  # the class where an object of it belongs
    return isinstance(value, (kind, *_ALSO.get(kind, ())))


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _words(hint: Any) -> str:
    names = [_name(get_origin(each) or each) for each in _members(hint)]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _name(kind: Any) -> str:
    if kind is NoneType:
        return "None"
    name = "function" if kind is Callable else kind.__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"
