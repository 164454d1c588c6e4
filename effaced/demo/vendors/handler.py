"""What the fake vendors answer to a call: what is right, or what their fault makes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from effaced.core import clock
from effaced.core.errors import Refused
from effaced.demo.vendors.faults import FaultKind
from effaced.demo.vendors.page import render
from effaced.demo.vendors.store import VENDORS, Vendor

if TYPE_CHECKING:
    from effaced.demo.vendors.server import Server

_BODY_LIMIT = 1_000_000
_Outcome = tuple[int | None, Mapping[str, object], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call a vendor got, as it came over the wire. No status: it hung up without an answer."""

    vendor: str
    method: str
    target: str
    status: int | None
    idempotency_key: str | None


class Handler(BaseHTTPRequestHandler):
    """One connection to the vendors."""

    protocol_version = "HTTP/1.1"
    server_version = "vendors"
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet per answer
    server: Server

    def log_message(self, *_: object) -> None:
        """Log nothing; `calls` records what happened."""

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/" and self.server.only is None:
            return self.reply(200, render(self.server.vendors).encode(), "text/html; charset=utf-8")
        return self.vendor_call()

    def do_DELETE(self) -> None:
        self.vendor_call()

    def do_PATCH(self) -> None:
        self.vendor_call()

    def do_POST(self) -> None:
        if urlsplit(self.path).path == "/_faults" and self.server.only is None:
            return self.change_faults()
        return self.vendor_call()

    def vendor_call(self) -> None:
        vendors = self.server.vendors
        url = urlsplit(self.path)
        vendor = VENDORS.get(url.path.split("/")[1])
        if vendor is None or self.server.only not in (None, vendor.name):
            return self.reply_json(404, {"error": "no such vendor"})
        body = self.body()  # one that nobody read would be taken for the next request
        key = self.headers.get("Idempotency-Key")
        status, answer, headers = self.misbehave(vendor) or self.behave(vendor, key, body)
        vendors.calls.append(Call(vendor.name, self.command, self.path, status, key))
        if status is None:
            self.close_connection = True
            return None
        return self.reply_json(status, answer, headers)

    def misbehave(self, vendor: Vendor) -> _Outcome | None:
        """What a fault makes of this call before anybody looks at it; None if it goes on as usual."""
        vendors, fault = self.server.vendors, self.server.vendors.fault_of(vendor.name)
        if fault is None:
            return None
        match fault.kind:
            case FaultKind.DOWN:
                return (None if fault.options["how"] == "close" else 503), {"error": "down"}, {}
            case FaultKind.SLOW:
                vendors.stopping.wait(fault.number("seconds"))
            case FaultKind.THROTTLED:
                wait = timedelta(seconds=fault.number("retry_after"))
                as_date = format_datetime(clock.now() + wait, usegmt=True)
                value = as_date if fault.options["as_date"] else str(int(wait.total_seconds()))
                return 429, {"error": "too many calls"}, {"Retry-After": value}
            case FaultKind.FLAKY:
                if vendors.count(vendor.name) % int(fault.number("every")) == 0:
                    return 500, {"error": "something broke"}, {}
            case FaultKind.UNAUTHORISED | FaultKind.REJECTS:
                return int(fault.number("status")), {"error": str(fault.kind)}, {}
        return None

    def behave(self, vendor: Vendor, key: str | None, body: bytes) -> _Outcome:
        if self.headers.get("Authorization") != f"Bearer {self.server.vendors.token}":
            return 401, {"error": "wrong token"}, {"WWW-Authenticate": "Bearer"}
        reference = _reference(vendor, self.path)
        if reference is None:
            return 404, {"error": "no such path"}, {}
        if not reference:
            return 400, {"error": "an empty reference would mean everybody"}, {}
        if self.command == "GET":
            found = self.server.vendors.store.find(vendor.name, reference)
            return (200, {"found": found}, {}) if found else (404, {"error": "not found"}, {})
        if self.command == "DELETE":
            return self.delete(vendor, reference, key)
        if self.command == "PATCH" and vendor.corrects:
            return self.correct(vendor, reference, key, body)
        allowed = "GET, DELETE, PATCH" if vendor.corrects else "GET, DELETE"
        return 405, {"error": f"{allowed} only"}, {"Allow": allowed}

    def replayed(self, vendor: Vendor, key: str | None, call: str) -> _Outcome | None:
        """What this key was answered before; a key that was used for something else is refused."""
        before = self.server.vendors.store.answer_to(vendor.name, key) if key else None
        if before is None:
            return None
        if before[0] != call:
            return 422, {"error": "key used"}, {}
        return before[1], {}, {"Idempotency-Replayed": "true"}

    def correct(self, vendor: Vendor, reference: str, key: str | None, body: bytes) -> _Outcome:
        vendors = self.server.vendors
        call = f"PATCH {self.path} {hashlib.sha256(body).hexdigest()}"
        if before := self.replayed(vendor, key, call):
            return before
        try:
            values = json.loads(body)
        except ValueError:
            values = None
        if not isinstance(values, dict) or not values or not set(values) <= set(vendor.corrects):
            return 422, {"error": f"expected some of {', '.join(vendor.corrects)}"}, {}
        if reference not in vendors.store.find(vendor.name, reference):
            return 404, {"error": "not found"}, {}
        fault = vendors.fault_of(vendor.name)
        if fault is None or fault.kind is not FaultKind.LIES:
            vendors.store.correct(vendor.name, reference, values)
            if key:
                vendors.store.remember(vendor.name, key, call, 200)
        return 200, {"corrected": sorted(values)}, {}

    def delete(self, vendor: Vendor, reference: str, key: str | None) -> _Outcome:
        vendors, call = self.server.vendors, f"DELETE {self.path}"
        if before := self.replayed(vendor, key, call):
            return before
        found = list(vendors.store.find(vendor.name, reference))
        if not found:
            return 404, {"error": "not found"}, {}
        fault = vendors.fault_of(vendor.name)
        if fault is not None and fault.kind is FaultKind.LIES:
            return 204, {}, {}
        if vendor.only_expires or (fault is not None and fault.kind is FaultKind.EXPIRES_ONLY):
            after = vendors.expire_after
            if fault is not None and fault.kind is FaultKind.EXPIRES_ONLY:
                after = timedelta(seconds=fault.number("seconds"))
            until = vendors.store.expire(vendor.name, found, after)
            return 202, {"expires_at": until.isoformat()}, {}
        vendors.store.delete(vendor.name, found)
        # Only what is final is remembered: "later" must be asked again, and a lie must not last.
        if key:
            vendors.store.remember(vendor.name, key, call, 204)
        return 204, {}, {}

    def change_faults(self) -> None:
        """`vendor`, `kind` (or `none`) and the kind's options, as a form or as JSON."""
        # A page of another site could post this form too.
        origin = self.headers.get("Origin")
        if origin not in (None, f"http://{self.headers.get('Host')}"):
            return self.reply_json(403, {"error": "not from here"})
        is_json = self.headers.get("Content-Type", "").startswith("application/json")
        try:
            text = self.body().decode()
            fields = json.loads(text) if is_json else dict(parse_qsl(text))
            vendor, kind = fields.pop("vendor"), fields.pop("kind")
            if kind == "none":
                self.server.vendors.heal(vendor)
            else:
                self.server.vendors.fault(vendor, kind, **fields)
        except Refused as refusal:
            return self.reply_json(422, {"error": refusal.message})
        except (ValueError, KeyError, AttributeError, TypeError):
            return self.reply_json(422, {"error": "expected vendor, kind and the kind's options"})
        if is_json:
            return self.reply_json(200, {"fault": str(self.server.vendors.fault_of(vendor) or "none")})
        return self.reply(303, b"", "text/plain", {"Location": "/"})

    def body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _BODY_LIMIT:
            self.close_connection = True
            return b""
        return self.rfile.read(int(length))

    def reply_json(
        self, status: int, answer: Mapping[str, object], headers: Mapping[str, str] | None = None
    ) -> None:
        body = b"" if status == 204 else json.dumps(answer).encode()
        self.reply(status, body, "application/json", headers)

    def reply(
        self, status: int, body: bytes, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def _reference(vendor: Vendor, target: str) -> str | None:
    """Whom a call is about; None if the path is not one of this vendor's."""
    url = urlsplit(target)
    collection = f"/{vendor.name}/{vendor.collection}"
    if vendor.by_prefix:
        values = parse_qs(url.query, keep_blank_values=True).get("prefix", [""])
        return values[0] if url.path == collection else None
    head, _, last = url.path.rpartition("/")
    return unquote(last) if head == collection else None
