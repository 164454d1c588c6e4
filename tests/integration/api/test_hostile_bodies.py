"""Keys, decisions, plans and subjects with whatever can be sent: refused, nothing stored, never 5xx."""

from __future__ import annotations

import json
from typing import Any

import pytest

Api = Any
VALUES: list[Any] = [
    None, True, -1, 2**80, 1e308, "", "\x00", "\ud800", "'; DROP TABLE effaced_requests; --", "{{7*7}}",
    "x" * 20_000, [], [[]], [None], {}, {"": {}}, {"id": {"id": 1}}, ["\x00"] * 60,
]  # fmt: skip
FIELDS = {
    "/keys": ["name", "approvals_needed", "scopes", "officer_id", "sandbox", "metadata_keys"],
    "/requests/plan": ["kind", "subject", "corrections"],
    "/requests/{id}/approve": ["reason", "datamap_hash"],
    "/entries/{id}/attest": ["reason"],
    "/subjects/search": ["id", "type", "identifier", "value"],
    "/requests": ["metadata", "retry", "reason", "subject"],
}
GOOD: dict[str, dict[str, Any]] = {
    "/keys": {"name": "fine", "scopes": ["decide:read"]},
    "/requests/plan": {"subject": {"id": "1"}},
    "/requests/{id}/approve": {"reason": "x"},
    "/entries/{id}/attest": {"reason": "x"},
    "/subjects/search": {},
    "/requests": {"kind": "erasure", "subject": {"id": "999"}},
}
# A null is as good as nothing where a field may be left out; a lone surrogate is no JSON in UTF-8, hence 400.
HARMLESS = (200, 201, 404)


@pytest.mark.parametrize("path", sorted(FIELDS))
def test_whatever_is_sent_is_refused_by_name_and_never_an_error_of_ours(api: Api, path: str) -> None:
    scopes = ("keys:write", "requests:write", "decide:approve", "decide:attest")
    token = api.officers_key(api.officer("mara"), *scopes)
    request_id = api.post(api.erasure("1")).get_json()["id"]
    url = f"/api/v1{path.format(id=request_id)}"
    client, headers = api.app.test_client(), {**api.headers(token), "Content-Type": "application/json"}
    for name in FIELDS[path]:
        for value in VALUES:
            data = json.dumps({**GOOD[path], name: value})
            before = api.rows()
            answer = client.post(url, data=data, headers=headers)
            assert answer.status_code in (*HARMLESS, 400, 409, 422), (name, str(value)[:40], answer.text)
            if answer.status_code not in HARMLESS:
                assert answer.get_json()["type"].startswith("urn:effaced:problem:")
                assert api.rows() == before, (name, str(value)[:40])


@pytest.mark.parametrize("path", ["/keys", "/requests", "/subjects/k1." + "0" * 64])
@pytest.mark.parametrize("query", ["after=x", "after=%00", "after=W10", "limit=1e3", "limit=0", "nonsense=1"])
def test_a_wrong_argument_is_refused(api: Api, path: str, query: str) -> None:
    token = api.new_key("all", scopes=("keys:read", "requests:read"))
    assert api.get(f"/api/v1{path}?{query}", token=token).status_code == 422
