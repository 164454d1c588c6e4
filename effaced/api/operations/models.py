"""How every error is answered."""

from __future__ import annotations

from effaced.api.models import Answer


class FieldError(Answer):
    """One thing that is wrong."""

    field: str
    code: str
    """For programs; it keeps its meaning."""
    message: str


class ProblemDetails(Answer):
    """A problem (RFC 9457). What was sent is never repeated."""

    type: str
    title: str
    status: int
    detail: str
    documentation: str
    errors: list[FieldError]
    trace_id: str | None
