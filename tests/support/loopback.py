"""HTTP to servers on this machine.

Without certificates: loading the store of them costs more than the call, and httpx does it for every call.
"""

from __future__ import annotations

from typing import Any

import httpx
from waiting import PATIENCE


def client(**options: Any) -> httpx.Client:
    return httpx.Client(**{"timeout": PATIENCE, "verify": False, **options})


def get(url: str, **options: Any) -> httpx.Response:
    return httpx.get(url, **{"timeout": PATIENCE, "verify": False, **options})


def post(url: str, **options: Any) -> httpx.Response:
    return httpx.post(url, **{"timeout": PATIENCE, "verify": False, **options})
