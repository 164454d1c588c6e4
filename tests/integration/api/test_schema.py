"""What the document says and what is answered, compared by schemathesis for every operation and scope."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import negative_data_rejection

from effaced.accounts.scopes import Scope, has_scope
from effaced.api.catalogue import OPERATIONS
from effaced.api.openapi.document import document

from .conftest import Api

IDS = [each.id for each in OPERATIONS]
QUICK, LONG = 3, int(os.environ.get("EFFACED_EXAMPLES", "300"))
# Not an error of the document: who may see a thing, and what is in a table, is in no schema.
REFUSED = ["2xx", "403", "404", "409", "422"]
# What a schema allows is not refused for these. Whether a field is needed can depend on another one.
OF_A_SCHEMA = {"wrong_type", "unknown_field", "too_long", "too_large", "too_small"}


@dataclass(frozen=True)
class Comparison:
    """What an application answers, beside its own document."""

    operations: dict[str, Any]
    tokens: dict[Scope, str]
    known: dict[str, str]


@pytest.fixture(scope="module")
def comparison(shared_api: Api) -> Comparison:
    operations = [each.ok() for each in load(shared_api).get_all_operations()]
    tokens = {scope: shared_api.new_key(scope, scopes=[scope]) for scope in Scope}
    return Comparison(
        {each.definition.raw["operationId"]: each for each in operations}, tokens, things(shared_api, tokens)
    )


def test_the_document_is_openapi() -> None:
    OpenAPIV31SpecValidator(json.loads(document())).validate()


@pytest.mark.parametrize("shared_api", ["sqlite"], indirect=True)
@pytest.mark.parametrize("operation_id", IDS)
def test_the_document_says_what_is_answered(comparison: Comparison, operation_id: str) -> None:
    compare(comparison, operation_id, QUICK)


@pytest.mark.drill
@pytest.mark.parametrize("operation_id", IDS)
def test_the_document_says_what_is_answered_to_very_many_calls(
    comparison: Comparison, operation_id: str
) -> None:
    compare(comparison, operation_id, LONG)


def compare(comparison: Comparison, operation_id: str, examples: int) -> None:
    """Call the operation as its schema allows and as it does not, with a key of each scope."""
    operation, tokens = comparison.operations[operation_id], comparison.tokens
    (declared,) = [each for each in OPERATIONS if each.id == operation_id]
    opening = [
        each for each in Scope if not declared.scopes or any(has_scope([each], n) for n in declared.scopes)
    ]

    def call(case: Any, scope: Scope, real: bool) -> None:
        if real:
            case.path_parameters = {**(case.path_parameters or {}), **names_of(case, comparison.known)}
        key = {"Authorization": f"Bearer {tokens[scope]}"}
        answer = case.call(headers=key)
        headers = case.meta.components.get(ParameterLocation.HEADER)
        # Where the key itself was left out or spoilt, it has just been put back.
        mended = headers is not None and headers.mode is GenerationMode.NEGATIVE
        case.validate_response(
            answer, headers=key, excluded_checks=[negative_data_rejection] if mended else None
        )
        if case.meta.generation.mode is GenerationMode.POSITIVE:
            assert answer.status_code != 401
        if scope not in opening:
            assert answer.status_code in (400, 401, 403, 404, 405), answer.status_code
        elif answer.status_code == 422 and case.meta.generation.mode is GenerationMode.POSITIVE:
            codes = {each["code"] for each in answer.json()["errors"]}
            assert not codes & OF_A_SCHEMA, answer.text

    scopes = st.sampled_from([*opening * 3, *Scope])
    for mode in GenerationMode:
        cases = operation.as_strategy(generation_mode=mode)
        settings(
            max_examples=examples,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
        )(given(cases, scopes, st.booleans())(call))()


def load(api: Api) -> Any:
    config = schemathesis.Config.from_dict(
        {
            "checks": {
                "positive_data_acceptance": {"expected-statuses": REFUSED},
            }
        }
    )
    return schemathesis.openapi.from_wsgi("/api/v1/openapi.json", api.app, config=config)


def things(api: Api, tokens: dict[Scope, str]) -> dict[str, str]:
    """What there is, by the name that paths give it."""
    sent = api.post(api.erasure("1"), token=tokens[Scope.REQUESTS_WRITE]).get_json()
    return {"request_id": sent["id"], "resolver": "crm", "name": "crm"}


def names_of(case: Any, known: dict[str, str]) -> dict[str, str]:
    return {name: known[name] for name in (case.path_parameters or {}) if name in known}
