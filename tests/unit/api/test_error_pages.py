"""Every error that the API answers is explained on the page that it links to."""

from __future__ import annotations

import pytest

from effaced.api.openapi.errors import FIELD_CODES, PROBLEM_TYPES
from effaced.api.operations import problems
from effaced.api.operations.codes import CODES
from effaced.api.operations.problems import Kind

KINDS = [each for each in vars(problems).values() if isinstance(each, Kind)]
KINDS += [kind for kind, _ in problems._BY_STATUS.values()]


def test_every_code_of_a_field_is_explained() -> None:
    assert FIELD_CODES == CODES


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.slug)
def test_every_type_of_problem_is_explained(kind: Kind) -> None:
    assert [each.kind for each in PROBLEM_TYPES].count(kind) == 1


def test_codes_are_in_the_order_of_the_alphabet() -> None:
    assert list(FIELD_CODES) == sorted(FIELD_CODES)
