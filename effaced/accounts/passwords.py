"""Passwords: hashed with argon2id, and checked with the same work whether or not there is a hash."""

from __future__ import annotations

import unicodedata
from functools import cache
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from effaced.core.errors import Problem

SHORTEST = 12
# Long enough for any passphrase, short enough that hashing it costs what hashing a short one costs.
LONGEST = 256

AT_ONCE = 2
"""How many hashes a process computes at the same time: each takes 64 MiB and several processors."""

_hasher = PasswordHasher()
_slots = BoundedSemaphore(AT_ONCE)


def password_problems(password: str) -> list[Problem]:
    """What a new password lacks; nothing if it will do."""
    if SHORTEST <= len(password) <= LONGEST:
        return []
    return [Problem("password", f"must have {SHORTEST} to {LONGEST} characters")]


def hash_password(password: str) -> str:
    """A hash to keep."""
    with _slots:
        return _hasher.hash(_normalised(password))


def verify_password(password_hash: str | None, password: str) -> bool:
    """Whether the password is right. With no hash the answer is no, after the same work."""
    if len(password) > LONGEST:
        password_hash, password = None, ""
    with _slots:
        # Made when the first password of any account is checked, so that it does not tell them apart.
        stand_in = _dummy_hash()
        try:
            _hasher.verify(password_hash or stand_in, _normalised(password))
        except (VerificationError, InvalidHashError):
            return False
    return password_hash is not None


def needs_rehash(password_hash: str) -> bool:
    """Whether the hash was made with weaker settings than today's."""
    return _hasher.check_needs_rehash(password_hash)


@cache
def _dummy_hash() -> str:
    return _hasher.hash("no officer has this password")


def _normalised(password: str) -> bytes:
    # Keyboards differ in how they write the same letter (é as one sign or as two).
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
