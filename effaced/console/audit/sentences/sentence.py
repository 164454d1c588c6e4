"""What a sentence about an event is, and the phrases that several of them use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Payload = Mapping[str, Any]
Moment = Callable[[datetime], str]


@dataclass(frozen=True, slots=True)
class Sentence:
    """How a type of event is shown. `render` gets the payload and how to write a moment."""

    tone: str
    icon: str
    render: Callable[[Payload, Moment], str]


def count(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def after_attempts(payload: Payload) -> str:
    return f"after {count(payload['attempts'], 'attempt')}"


def through_api(payload: Payload) -> str:
    """Said of what an officer did through an API key of theirs."""
    return " over the API" if payload.get("api_key_id") else ""
