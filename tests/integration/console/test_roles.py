"""Who may do what, and that a form is ours."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.browser.seed import House
from tests.integration.console.conftest import Visitor, path_of, ref_of

READING = {
    "console.sign_in.send",
    "console.sign_in.out",
    "console.theme.choose",
    "console.requests.search",
    "console.audit.take_out",
}


def posts(app: Flask) -> list[tuple[str, str]]:
    return [
        (rule.endpoint, path_of(rule))
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("console.") and "POST" in (rule.methods or ())
    ]


def test_an_auditor_can_send_no_form_that_changes_anything(app: Flask, cleo: Visitor) -> None:
    acting = [path for endpoint, path in posts(app) if endpoint not in READING]
    assert acting
    assert dict.fromkeys(acting, 403) == {path: cleo.post(path).status_code for path in acting}


def test_no_form_is_taken_without_its_token(app: Flask, ada: Visitor) -> None:
    ada.get("/console/audit")
    assert ada.token
    ada.token = "forged"
    assert {path: 400 for _, path in posts(app)} == {
        path: ada.post(path).status_code for _, path in posts(app)
    }


def test_the_token_may_come_in_a_header(ada: Visitor) -> None:
    ada.get("/console/audit")
    token, ada.token = ada.token, ""
    answer = ada.post("/console/theme", {"theme": "dark"}, headers={"X-CSRFToken": token})
    assert answer.status_code == 303


def test_an_auditor_sees_no_buttons_to_act_with(house: House, ada: Visitor, cleo: Visitor) -> None:
    ref = ref_of(house, house.ask(1))
    path = f"/console/requests/{ref}/approve"
    assert path in ada.get(f"/console/requests/{ref}").text
    assert path not in cleo.get(f"/console/requests/{ref}").text


def test_an_auditor_may_search_and_export(cleo: Visitor) -> None:
    found = cleo.post("/console/requests/search", {"kind": "email", "value": "p1@example.com"})
    assert found.status_code == 303
    assert cleo.post("/console/audit/export/csv").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/console/",
        "/console/requests",
        "/console/abandoned",
        "/console/scheduled",
        "/console/verified",
        "/console/retentions",
        "/console/resolvers",
        "/console/datamap",
        "/console/audit",
    ],
)
def test_an_auditor_reads_every_page(cleo: Visitor, path: str) -> None:
    assert cleo.get(path).status_code == 200
