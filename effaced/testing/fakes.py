"""Resolvers that do as they are told: for apps that embed effaced, and for effaced's own tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from effaced.model import SubjectRef
from effaced.resolvers.protocols import Answer, Erased


@dataclass
class RecordingResolver:
    """Gives the answer that `answer` has for a reference, raises it if it is an exception, and
    remembers in `calls` who was asked for under which key."""

    answer: Callable[[str], Answer | BaseException] = field(default=lambda _: Erased())
    calls: list[tuple[str, UUID]] = field(default_factory=list)

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        self.calls.append((ref.value, key))
        answer = self.answer(ref.value)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@dataclass
class VerifyingRecordingResolver(RecordingResolver):
    """The same, with a read-back that answers or raises what `absent` has for a reference."""

    absent: Callable[[str], bool | BaseException] = field(default=lambda _: True)

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        seen = self.absent(ref.value)
        if isinstance(seen, BaseException):
            raise seen
        return seen
