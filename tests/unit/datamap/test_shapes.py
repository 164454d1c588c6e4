"""The forms of surrogates: what is written is recognised, and what a person wrote is not."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from sqlalchemy import types

from effaced.datamap.model.data_map import Surrogate
from effaced.datamap.surrogates.shapes import (
    HASH_LENGTH,
    RANDOM_TEXTS,
    Hashing,
    is_text_surrogate,
    make_uuid,
    number_range,
)


@pytest.mark.parametrize("surrogate", list(RANDOM_TEXTS))
def test_a_random_text_is_recognised_and_never_the_same(surrogate: Surrogate) -> None:
    one, other = RANDOM_TEXTS[surrogate].make(), RANDOM_TEXTS[surrogate].make()

    assert one != other
    assert is_text_surrogate(one, surrogate)


@pytest.mark.parametrize(
    "text", ["erased-bob", "erased-", "erased-0123456789abcde", "erased-0123456789ABCDEF"]
)
def test_a_text_that_only_looks_like_a_surrogate_is_a_person_s(text: str) -> None:
    assert not is_text_surrogate(text, Surrogate.RANDOM_UNIQUE)


def test_a_random_text_gets_shorter_with_its_column_but_not_too_short_to_be_recognised() -> None:
    form = RANDOM_TEXTS[Surrogate.RANDOM_EMAIL]

    shortest = f"erased-{'0' * form.digits(form.shortest)}{form.suffix}"
    assert len(shortest) == form.shortest
    assert form.recognises(shortest)
    assert not form.recognises(shortest.replace("0", "", 1))


def test_a_random_uuid_is_recognised_with_and_without_dashes() -> None:
    text = make_uuid()

    assert is_text_surrogate(text, Surrogate.RANDOM_UUID)
    assert is_text_surrogate(text.replace("-", ""), Surrogate.RANDOM_UUID)
    assert not is_text_surrogate(text.replace("-", "", 1), Surrogate.RANDOM_UUID)


def test_a_keyed_hash_is_the_hmac_of_the_text_behind_its_key_s_id() -> None:
    hashed = Hashing.of("k1", b"secret").hash("ada@example.com")

    digest = hmac.new(b"secret", b"ada@example.com", hashlib.sha256).hexdigest()
    assert hashed == f"hashed-k1-{digest}"
    assert is_text_surrogate(hashed, Surrogate.KEYED_HASH)
    assert len(hashed) <= HASH_LENGTH


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (types.SmallInteger(), (1 - 2**15, -(2**14))),
        (types.Integer(), (1 - 2**31, -(2**30))),
        (types.BigInteger(), (1 - 2**53, -(2**52))),
        (types.Numeric(5, 2), (-999, -500)),
        (types.Numeric(2, 2), None),
        (types.Float(), None),
        (types.Text(), None),
    ],
)
def test_random_numbers_are_in_the_lower_half_of_what_the_type_holds(
    kind: types.TypeEngine[object], expected: tuple[int, int] | None
) -> None:
    assert number_range(kind) == expected
