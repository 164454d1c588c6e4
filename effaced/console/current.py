"""What a view needs from its surroundings: the runtime, and who is signed in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from flask import current_app
from flask_login import current_user

from effaced.core import clock
from effaced.model import Role
from effaced.runtime import Runtime
from effaced.triage.systems import manual_resolvers


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The officer behind a session, as Flask-Login wants them."""

    id: UUID
    name: str
    role: Role
    session_epoch: int
    is_authenticated: bool = True
    is_active: bool = True
    is_anonymous: bool = False

    def get_id(self) -> str:
        # A new password raises the epoch, and every session opened before it ends.
        return f"{self.id}:{self.session_epoch}"

    @property
    def can_act(self) -> bool:
        return self.role in (Role.OFFICER, Role.ADMIN)

    @property
    def actor(self) -> str:
        """How the trail names them."""
        return f"officer:{self.id}"


def runtime() -> Runtime:
    return cast(Runtime, current_app.extensions["effaced"])


def by_hand() -> frozenset[str]:
    """The systems where a person does the work and attests it."""
    return manual_resolvers(runtime().registry)


def local_now() -> datetime:
    """Now, in the time zone whose days count."""
    return clock.now().astimezone(runtime().settings.zone)


def me() -> SignedIn:
    """Who is signed in. Only for views behind the guard."""
    return cast(SignedIn, current_user._get_current_object())
