"""One call of an operation, as its function sees it, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sqlalchemy.orm import Session

from effaced.api.models import Answer
from effaced.api.operations.caller import Caller
from effaced.core.crypto import Keyring
from effaced.core.log import get_logger
from effaced.runtime import Runtime

A = TypeVar("A", bound=Answer | None, covariant=True)
_log = get_logger(__name__)


@dataclass(slots=True)
class Call:
    """The caller, and the transaction that is committed when the function returns."""

    runtime: Runtime
    session: Session
    caller: Caller
    _after_commit: list[Callable[[], object]] = field(default_factory=list)

    @property
    def keyring(self) -> Keyring:
        return self.runtime.keyring

    @property
    def actor(self) -> str:
        """Who the trail names."""
        return self.caller.actor

    def after_commit(self, action: Callable[[], object]) -> None:
        """Do this once what was changed is committed. Whether it works changes nothing of the answer."""
        self._after_commit.append(action)

    def committed(self) -> None:
        for action in self._after_commit:
            try:
                action()
            except Exception as error:  # the caller would repeat what is done already
                _log.error("after_commit_failed", exc_info=error)


@dataclass(frozen=True, slots=True)
class Reply(Generic[A]):
    """An answer with another status than the operation's usual one, or with headers."""

    answer: A
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
