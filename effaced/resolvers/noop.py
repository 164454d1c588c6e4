"""A resolver that calls nobody: for benches and for trying a configuration out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from effaced.model import SubjectRef
from effaced.resolvers.protocols import Erased, Limits
from effaced.resolvers.settings import Strict, validate


class NoopConfig(Strict):
    """Nothing to say."""


class NoopResolver:
    """Answers `Erased` at once."""

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Erased:
        return Erased()


def from_config(name: str, config: dict[str, Any], limits: Limits) -> NoopResolver:  # noqa: ARG001
    """A resolver that does nothing; any key of its own is refused."""
    validate(NoopConfig, config)
    return NoopResolver()
