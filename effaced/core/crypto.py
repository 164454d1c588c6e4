"""Keys: sealing what must be read again, hashing what must only be recognised."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from effaced.core.arguments import checked
from effaced.core.errors import ConfigurationError, Unavailable
from effaced.model import SubjectKey

_FORMAT = b"\x01"
_EXPECTED = (
    "EFFACED_KEYS: expected id:key[,id:key...], newest first, each key 32 bytes as base64. "
    "`effaced keys new` writes one."
)


@dataclass(frozen=True, slots=True)
class Keyring:
    """Named keys. The first seals and hashes; all of them open and recognise."""

    keys: tuple[tuple[str, bytes], ...] = field(repr=False)

    @classmethod
    @checked
    def parse(cls, text: str) -> Keyring:
        keys: dict[str, bytes] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            key_id, _, encoded = part.partition(":")
            try:
                key = base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                key = b""
            if len(key) != 32 or not key_id.isalnum() or len(key_id) > 16 or key_id in keys:
                raise ConfigurationError(_EXPECTED)
            keys[key_id] = key
        if not keys:
            raise ConfigurationError(_EXPECTED)
        return cls(tuple(keys.items()))

    @property
    def current_id(self) -> str:
        return self.keys[0][0]

    def seal(self, plaintext: bytes, *, purpose: str, context: str) -> bytes:
        """Encrypt. `context` (a row's id, say) must be given again to open it."""
        key_id, key = self.keys[0]
        nonce = secrets.token_bytes(12)
        box = _cipher(key, purpose).encrypt(nonce, plaintext, context.encode())
        name = key_id.encode()
        return _FORMAT + bytes([len(name)]) + name + nonce + box

    def open(self, sealed: bytes, *, purpose: str, context: str) -> bytes:
        """Decrypt what `seal` made, with whichever key it names."""
        length = sealed[1]
        key_id = sealed[2 : 2 + length].decode()
        nonce, box = sealed[2 + length : 14 + length], sealed[14 + length :]
        key = dict(self.keys).get(key_id)
        if key is None:
            raise Unavailable(f"EFFACED_KEYS has no key '{key_id}', which this record was sealed with.")
        try:
            return _cipher(key, purpose).decrypt(nonce, box, context.encode())
        except InvalidTag:
            raise Unavailable(f"The record can't be opened: key '{key_id}' is another key today.") from None

    def subject_key(self, subject_id: str) -> SubjectKey:
        """The keyed hash that names a person in the trail."""
        return self.fingerprint(subject_id, purpose="subject")

    def fingerprint(self, value: str, *, purpose: str) -> SubjectKey:
        """A keyed hash under the current key."""
        return self.fingerprints(value, purpose=purpose)[0]

    def fingerprints(self, value: str, *, purpose: str) -> list[SubjectKey]:
        """The same value under every key, newest first, for look-ups after a rotation."""
        return [
            SubjectKey(
                key_id, hmac.new(_derive(key, f"hmac:{purpose}"), value.encode(), "sha256").hexdigest()
            )
            for key_id, key in self.keys
        ]

    def secret(self, purpose: str) -> bytes:
        """A secret of its own for another use, such as signing session cookies."""
        return _derive(self.keys[0][1], f"secret:{purpose}")


def new_key(key_id: str = "k1") -> str:
    """A fresh key as EFFACED_KEYS wants it."""
    return f"{key_id}:{base64.b64encode(secrets.token_bytes(32)).decode()}"


def token_hash(token: str) -> str:
    """For random tokens (API keys): long and uniform, so that a plain hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


@lru_cache(maxsize=64)
def _cipher(key: bytes, purpose: str) -> AESGCM:
    return AESGCM(_derive(key, f"seal:{purpose}"))


@lru_cache(maxsize=256)
def _derive(key: bytes, purpose: str) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"effaced:{purpose}".encode()).derive(
        key
    )
