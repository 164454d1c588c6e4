"""The base of what the API answers."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


class Answer(BaseModel):
    """What was answered. Fields that a newer server adds are left out, new words are taken as is."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True, protected_namespaces=())


class Listed(Answer, Generic[T]):
    """A list, or a part of one: `next` is the `after` of the following page; None on the last one."""

    data: list[T]
    next: str | None = None
