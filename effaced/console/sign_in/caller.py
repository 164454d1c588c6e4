"""Who is asking, as far as sign-in limits are concerned: an address, and perhaps a known browser."""

from __future__ import annotations

import ipaddress
import secrets
from uuid import UUID

from flask import current_app, request, url_for
from itsdangerous import BadSignature, URLSafeSerializer
from werkzeug.wrappers import Response

from effaced.accounts.sign_in import Device
from effaced.console.current import runtime

_COOKIE = "effaced_device"
_KEPT_SECONDS = 180 * 24 * 3600


def client_address() -> str:
    """The address that limits are counted for.

    It is the peer's, unless a setting names the header in which the proxy puts the client's. Of several
    addresses in it the last counts: that is the one the proxy added; those before came from the client.
    """
    header = runtime().settings.client_address_header
    given = request.headers.get(header, "").rpartition(",")[2].strip() if header else ""
    return _network(given) or _network(request.remote_addr or "") or "local"


def known_device() -> Device | None:
    """The browser, if an officer has signed in from it before."""
    try:
        officer_id, device_id = _signer().loads(request.cookies.get(_COOKIE, ""))
        return Device(UUID(officer_id), str(device_id))
    except (BadSignature, ValueError, TypeError, AttributeError):
        return None


def remember_device(response: Response, officer_id: UUID) -> None:
    """Recognise this browser at the officer's next sign-in. It opens nothing by itself."""
    before = known_device()
    device_id = before.id if before and before.officer_id == officer_id else secrets.token_urlsafe(16)
    response.set_cookie(
        _COOKIE,
        _signer().dumps([str(officer_id), device_id]),
        max_age=_KEPT_SECONDS,
        path=url_for("console.sign_in.form"),
        secure=runtime().settings.secure_cookies,
        httponly=True,
        samesite="Lax",
    )


def _signer() -> URLSafeSerializer:
    return URLSafeSerializer(current_app.config["SECRET_KEY"], salt="device")


def _network(text: str) -> str | None:
    """An IPv4 address, or the /64 of an IPv6 one, all of which usually belong to one customer."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
