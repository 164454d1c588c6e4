"""Sealing, recognising, and rotating keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effaced.core.crypto import Keyring, new_key
from effaced.core.errors import ConfigurationError, Unavailable

OLD, NEW = new_key("old"), new_key("new")


@given(st.binary(max_size=200))
def test_what_is_sealed_can_be_opened(plain: bytes) -> None:
    ring = Keyring.parse(OLD)
    assert ring.open(ring.seal(plain, purpose="ref", context="7"), purpose="ref", context="7") == plain


@pytest.mark.parametrize(("purpose", "context"), [("note", "7"), ("ref", "8")])
def test_a_seal_opens_only_where_it_belongs(purpose: str, context: str) -> None:
    ring = Keyring.parse(OLD)
    sealed = ring.seal(b"anna", purpose="ref", context="7")
    with pytest.raises(Unavailable):
        ring.open(sealed, purpose=purpose, context=context)


def test_after_a_rotation_old_seals_open_and_new_ones_use_the_new_key() -> None:
    before, after = Keyring.parse(OLD), Keyring.parse(f"{NEW},{OLD}")
    sealed = before.seal(b"anna", purpose="ref", context="7")
    assert after.open(sealed, purpose="ref", context="7") == b"anna"
    with pytest.raises(Unavailable, match="'new'"):
        before.open(after.seal(b"anna", purpose="ref", context="7"), purpose="ref", context="7")


def test_after_a_rotation_people_are_still_recognised() -> None:
    before, after = Keyring.parse(OLD), Keyring.parse(f"{NEW},{OLD}")
    assert before.subject_key("4711") in after.fingerprints("4711", purpose="subject")
    assert after.subject_key("4711").key_id == "new"


def test_the_same_value_hashes_differently_for_another_purpose() -> None:
    ring = Keyring.parse(OLD)
    assert ring.fingerprint("anna", purpose="note") != ring.fingerprint("anna", purpose="subject")


UNUSABLE = {
    "nothing": "",
    "no key": "k1",
    "too short": "k1:short",
    "twice the same name": f"{OLD},{OLD}",
    "a space in the name": "k 1:" + OLD.split(":")[1],
    "no name": ":" + OLD.split(":")[1],
}


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_unusable_keys_are_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Keyring.parse(text)
    assert "EFFACED_KEYS" in str(caught.value)
    assert text == "" or text not in str(caught.value)


def test_no_key_can_be_read_from_a_repr():
    keyring = Keyring.parse(new_key())
    assert repr(keyring.keys[0][1]) not in repr(keyring)
