"""The form of the texts and numbers that replace an erased value, so that they are recognised later."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import types

from effaced.core.crypto import Keyring
from effaced.datamap.model.data_map import Surrogate

PREFIX = "erased-"
HASHED = re.compile(r"hashed-[0-9A-Za-z]{1,16}-[0-9a-f]{64}")
HASH_LENGTH = len("hashed--") + 16 + 64
UUID_PREFIX = "effaced0"
"""Eight hexadecimal digits that no other random UUID starts with but by a rare chance."""
_UUID = re.compile(rf"{UUID_PREFIX}(-?)[0-9a-f]{{4}}\1[0-9a-f]{{4}}\1[0-9a-f]{{4}}\1[0-9a-f]{{12}}")
_MOST_DIGITS = 32
_FEWEST_DIGITS = 16


@dataclass(frozen=True, slots=True)
class RandomText:
    """`erased-`, as many random hexadecimal digits as there is room for, and a suffix."""

    suffix: str = ""

    @property
    def shortest(self) -> int:
        """The length a column needs for two random values to hardly ever be equal."""
        return len(PREFIX) + _FEWEST_DIGITS + len(self.suffix)

    def digits(self, length: int | None) -> int:
        return _MOST_DIGITS if length is None else min(_MOST_DIGITS, length - len(PREFIX) - len(self.suffix))

    def recognises(self, text: str) -> bool:
        form = f"{PREFIX}[0-9a-f]{{{_FEWEST_DIGITS},{_MOST_DIGITS}}}{re.escape(self.suffix)}"
        return re.fullmatch(form, text) is not None

    def make(self) -> str:
        return f"{PREFIX}{secrets.token_hex(_MOST_DIGITS // 2)}{self.suffix}"


RANDOM_TEXTS = {
    Surrogate.RANDOM_UNIQUE: RandomText(),
    Surrogate.RANDOM_EMAIL: RandomText("@erased.invalid"),
}


def make_uuid() -> str:
    rest = secrets.token_hex(12)
    return f"{UUID_PREFIX}-{rest[:4]}-4{rest[5:8]}-a{rest[9:12]}-{rest[12:]}"


def is_text_surrogate(text: str, surrogate: Surrogate | None) -> bool:
    """Whether a text is one that this surrogate writes."""
    if surrogate in RANDOM_TEXTS:
        return RANDOM_TEXTS[surrogate].recognises(text)
    if surrogate is Surrogate.RANDOM_UUID:
        return _UUID.fullmatch(text) is not None
    return surrogate is Surrogate.KEYED_HASH and HASHED.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Hashing:
    """What keyed hashes are made with: HMAC's two padded keys, and the prefix."""

    inner: bytes = field(repr=False)
    outer: bytes = field(repr=False)
    label: str

    @classmethod
    def under(cls, keyring: Keyring, place: str = "") -> Hashing:
        """With the newest key. The same value has another hash in each place.

        The place is a system whose database is erased in; it is empty for your own database.
        """
        purpose = f"datamap:keyed_hash:{place}" if place else "datamap:keyed_hash"
        return cls.of(keyring.current_id, keyring.secret(purpose))

    @classmethod
    def of(cls, key_id: str, key: bytes) -> Hashing:
        block = key.ljust(64, b"\0")
        inner, outer = bytes(each ^ 0x36 for each in block), bytes(each ^ 0x5C for each in block)
        return cls(inner, outer, f"hashed-{key_id}-")

    def hash(self, text: str) -> str:
        within = hashlib.sha256(self.inner + text.encode("utf-8", "surrogatepass")).digest()
        return self.label + hashlib.sha256(self.outer + within).hexdigest()


def number_range(kind: types.TypeEngine[Any]) -> tuple[int, int] | None:
    """The numbers that replace others: the lower half of what the type can hold. None if there are none.

    Never beyond what a floating-point number keeps exactly, since others may read it as one.
    """
    if isinstance(kind, types.Integer):
        bits = (
            15 if isinstance(kind, types.SmallInteger) else 53 if isinstance(kind, types.BigInteger) else 31
        )
        return 1 - 2**bits, -(2 ** (bits - 1))
    if isinstance(kind, types.Float) or not isinstance(kind, types.Numeric):
        return None
    digits = 15 if kind.precision is None else min(15, kind.precision - (kind.scale or 0))
    return (1 - 10**digits, -5 * 10 ** (digits - 1)) if digits > 0 else None
