"""What the models of bodies take for what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from effaced.api.dead_letters.models import PurgeBody
from effaced.api.openapi.document import document
from effaced.api.retries.models import RetryPolicyBody

PURGE: dict[str, Any] = {"older_than_days": 90, "expected": 0, "reason": "tidying up"}


def purge(**fields: Any) -> PurgeBody:
    return PurgeBody.model_validate_json(json.dumps({**PURGE, **fields}))


def schemas() -> dict[str, Any]:
    return json.loads(document())["components"]["schemas"]  # type: ignore[no-any-return]


def test_an_integer_may_be_written_with_an_empty_fraction() -> None:
    assert repr(purge(older_than_days=162.0).older_than_days) == "162"
    body = RetryPolicyBody.model_validate_json('{"policy": {"max_attempts": 1.2e1, "multiplier": 1.5}}')
    assert repr(body.policy) == "{'max_attempts': 12, 'multiplier': 1.5}"


@pytest.mark.parametrize("number", [1.5, 1e300, -1.0, 36_501.0, "90", True, None, [90]])
def test_what_is_no_integer_in_the_bounds_is_refused(number: object) -> None:
    with pytest.raises(ValidationError):
        purge(older_than_days=number)


def test_the_bounds_of_an_integer_are_in_the_document() -> None:
    field = schemas()["PurgeBody"]["properties"]["older_than_days"]
    assert (field["type"], field["minimum"], field["maximum"]) == ("integer", 0, 36_500)


@pytest.mark.parametrize("reason", ["", " ", "\n\t ", "\u200b", "\0"])
def test_a_reason_in_which_there_is_nothing_to_read_is_refused(reason: str) -> None:
    with pytest.raises(ValidationError):
        purge(reason=reason)


def test_the_document_says_that_a_reason_is_not_blank() -> None:
    assert schemas()["PurgeBody"]["properties"]["reason"]["pattern"] == r"\S"


def test_the_document_names_the_fields_of_a_retry_policy() -> None:
    policy = schemas()["RetryPolicyBody"]["properties"]["policy"]
    assert policy["additionalProperties"] is False
    assert policy["properties"]["max_attempts"] == {"type": "integer", "minimum": 1, "maximum": 50}
    assert policy["properties"]["backoff_strategy"]["enum"] == ["exponential", "linear", "fixed"]
