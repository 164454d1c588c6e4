"""Systems without an interface: a person does it by hand and attests it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from pydantic import Field

from effaced.core import clock
from effaced.model import Correction, SubjectRef
from effaced.resolvers.protocols import AwaitsPerson, Limits
from effaced.resolvers.settings import Strict, validate

KIND = "manual"


class ManualConfig(Strict):
    """By when it has to be done, and what the person who does it should know."""

    due_days: float = Field(default=14, gt=0, le=90, allow_inf_nan=False)
    instructions: str | None = Field(default=None, min_length=1, max_length=500)


class ManualResolver:
    """Makes no call: answers that a person has to do it, and by when."""

    def __init__(self, config: ManualConfig) -> None:
        self.instructions = config.instructions
        self._due = timedelta(days=config.due_days)

    async def schedule_erasure(self, ref: SubjectRef, *, key: UUID) -> AwaitsPerson:
        return AwaitsPerson(clock.now() + self._due)

    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> AwaitsPerson:
        return AwaitsPerson(clock.now() + self._due)


def from_config(name: str, config: dict[str, Any], limits: Limits) -> ManualResolver:  # noqa: ARG001
    return ManualResolver(validate(ManualConfig, config))
