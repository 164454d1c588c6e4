"""Wrong API keys cost a look-up each, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from slow_hasher import SlowHasher

from effaced.accounts import passwords

Api = Any


def test_many_of_them_write_nothing_and_hash_no_password(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    hasher = SlowHasher()
    monkeypatch.setattr(passwords, "_hasher", hasher)
    before = api.rows()
    for number in range(50):
        wrong = f"eff_abcdefgh_{'a' * 30}{'abcdefghij'[number % 10]}{'abcdefghij'[number // 10]}"
        assert api.get("/api/v1/requests/1", token=wrong).status_code == 401
    assert api.rows() == before
    assert hasher.most == 0
