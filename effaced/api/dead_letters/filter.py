"""Which dead letters: the same names in queries, in bodies of redrives, and in answers."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from effaced.api.models import Name
from effaced.deadletters.read import DeadLetterFilter
from effaced.deadletters.rules import OPEN, Sla
from effaced.model import DeadLetterDomain, DeadLetterStatus

EVERY = "all"
_WORDS = (*DeadLetterStatus, EVERY)


def _statuses(words: list[str]) -> list[str]:
    if set(words) - set(_WORDS):
        raise PydanticCustomError("value", f"must be among {', '.join(_WORDS)}", {"code": "not_allowed"})
    return words


_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string", "enum": list(_WORDS)},
    "maxItems": len(_WORDS),
}
Statuses = Annotated[
    list[str], Field(max_length=len(_WORDS)), AfterValidator(_statuses), WithJsonSchema(_SCHEMA)
]


class FilterFields(BaseModel):
    """All that are given have to hold."""

    status: Statuses = Field(
        default=[],
        description="Any of these; `all` takes every one. Without it the open ones: "
        + ", ".join(f"`{each}`" for each in OPEN)
        + ".",
    )
    domain: DeadLetterDomain | None = Field(default=None, description="What failed.")
    resolver: Name | None = None
    error: Name | None = Field(default=None, description="The error class, exactly.")
    code: Name | None = Field(default=None, description="The error code, exactly.")
    request_id: UUID | None = None
    assigned_to: UUID | None = Field(default=None, description="The id of an officer.")
    unassigned: bool = Field(default=False, description="Only those that are assigned to nobody.")
    late: bool = Field(default=False, description="Only those that have been open longer than they may.")
    expired: bool = Field(default=False, description="Only those whose `expires_at` has passed.")

    def chosen(self, sla: Sla) -> DeadLetterFilter:
        """The filter as dead letters are found by it."""
        named = tuple(DeadLetterStatus(each) for each in dict.fromkeys(self.status) if each != EVERY)
        return DeadLetterFilter(
            statuses=() if EVERY in self.status else named or OPEN,
            domain=self.domain,
            resolver=self.resolver,
            error=self.error,
            code=self.code,
            request_id=self.request_id,
            assigned_to=self.assigned_to,
            unassigned=self.unassigned,
            late=self.late,
            expired=self.expired,
            sla=sla,
        )
