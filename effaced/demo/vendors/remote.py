"""Switching the faults of fake vendors that run in another process."""

from __future__ import annotations

import httpx

from effaced.core.errors import Unavailable


def switch(vendors: str, vendor: str, kind: str, **options: object) -> None:
    """Switch a vendor's fault on, or with `none` off. `vendors` is where the page is."""
    fields = {"vendor": vendor, "kind": kind, **options}
    try:
        httpx.post(f"{vendors}/_faults", json=fields, trust_env=False).raise_for_status()
    except httpx.HTTPError:
        raise Unavailable(f"The fake vendors at {vendors} do not answer. Does the demo still run?") from None
