from __future__ import annotations

import pytest
from argon2 import PasswordHasher

from effaced.accounts import passwords


@pytest.fixture(autouse=True)
def _cheap_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same argon2 with less work: these tests are about what happens, not about what guessing costs."""
    monkeypatch.setattr(passwords, "_hasher", PasswordHasher(time_cost=2, memory_cost=64, parallelism=1))
