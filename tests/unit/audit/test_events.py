"""The trail takes ids, words and counts, and nothing else."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import TYPES, Event, StepFailed, StepSucceeded
from effaced.model import StepOutcome


@pytest.mark.parametrize("annotation", [str, dict, object, list[str], str | None, bytes, float])
def test_a_type_with_room_for_anything_cannot_be_declared(annotation: object) -> None:
    with pytest.raises(TypeError, match="can't hold"):
        type("Loose", (Event,), {"__annotations__": {"detail": annotation}, "__module__": __name__})


@pytest.mark.parametrize("text", ["anna@people.example", "could not find Anna", "", "x" * 256])
def test_an_error_field_takes_a_class_name_and_no_message(text: str) -> None:
    with pytest.raises(ValidationError):
        StepFailed(resolver="crm", error=text, code="http_400", attempts=1)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError):
        StepSucceeded(resolver="crm", outcome=StepOutcome.ERASED, attempts=1, email="anna")  # type: ignore[call-arg]


def test_an_event_of_no_registered_type_is_refused() -> None:
    class Stranger(Event):
        number: int

    with pytest.raises(TypeError, match="not a registered"):
        append_one(Session(), Stranger(number=1))


def test_every_type_has_a_name_of_its_own() -> None:
    assert all(name == event.type and name.isupper() for name, event in TYPES.items())
