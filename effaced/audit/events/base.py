"""What an event may hold: ids, words, counts, class names, moments.

A payload that holds anything else does not come into being, so nothing personal can reach the trail by
accident. Names of people, typed reasons and error messages have no field to go to.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, ConfigDict, StringConstraints

# A machine word: resolver, class, table or error code. Has no room for an e-mail address or a sentence.
Code = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:\-]{1,255}$")]
# A table's, column's or system's name comes from the company's own configuration.
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]{1,255}$")]
# A legal basis is written by the company in its data map, not by or about a person.
Basis = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^@]*$")]
HexDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

_ALLOWED = (UUID, int, bool, datetime)
TYPES: dict[str, type[Event]] = {}


class Payload(BaseModel):
    """What may be kept and told: a subclass with a field that has room for more can't be declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        for name, field in cls.model_fields.items():
            if not _permitted(field.annotation, field.metadata):
                raise TypeError(f"{cls.__name__}.{name}: a payload can't hold a {field.annotation}")


class Event(Payload):
    """Base of all events. Subclasses register themselves under their `type`."""

    type: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "type" in cls.__dict__:
            TYPES[cls.type] = cls


def _permitted(annotation: Any, metadata: list[Any]) -> bool:
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _permitted(inner, more)
    if get_origin(annotation) in (tuple, Union, UnionType):
        return all(_permitted(part, metadata) for part in get_args(annotation) if part is not Ellipsis)
    if annotation is str:
        return any(getattr(rule, "pattern", None) for rule in metadata)
    if not isinstance(annotation, type):
        return False
    return annotation is NoneType or issubclass(annotation, (StrEnum, Payload, *_ALLOWED))


class Noted(Event):
    """An event with a reason that a person typed, kept in a note."""

    note_id: UUID | None = None
    note_hmac: HexDigest | None = None
