"""What every answer carries."""

from __future__ import annotations

import re
from collections.abc import Callable

from flask import Flask

from effaced.app import create_app
from effaced.runtime import Runtime
from tests.browser.seed import House
from tests.integration.console.conftest import Visitor

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def test_the_content_security_policy_is_exactly_this_everywhere(app: Flask, ada: Visitor) -> None:
    for path in (
        "/console/",
        "/console/nothing-here",
        "/static/css/base.css",
        "/healthz",
        "/api/v1/requests/x",
    ):
        assert ada.get(path).headers["Content-Security-Policy"] == CSP, path


def test_pages_are_not_stored_not_sniffed_and_tell_no_referrer(ada: Visitor) -> None:
    headers = ada.get("/console/").headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "HX-Request" in headers["Vary"]


def test_static_files_are_kept_for_a_year_under_a_url_of_their_content(ada: Visitor) -> None:
    url = re.findall(r'href="(/static/css/[^"]+)"', ada.get("/console/").text)[0]
    assert "immutable" in ada.get(url).headers["Cache-Control"]


def test_cookies_stay_out_of_scripts_and_other_sites(app: Flask) -> None:
    cookie = app.test_client().get("/console/sign-in").headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Secure" not in cookie


def test_secure_cookies_bring_the_flag_and_strict_transport(house: House) -> None:
    settings = house.runtime.settings.model_copy(update={"secure_cookies": True})
    answer = create_app(Runtime(settings, database=house.runtime.db)).test_client().get("/console/sign-in")
    assert "Secure" in answer.headers["Set-Cookie"]
    assert answer.headers["Strict-Transport-Security"].startswith("max-age=31536000")


def test_without_secure_cookies_there_is_no_strict_transport(ada: Visitor) -> None:
    assert "Strict-Transport-Security" not in ada.get("/console/").headers


def test_forms_work_over_https_although_no_referrer_is_sent(house: House) -> None:
    settings = house.runtime.settings.model_copy(update={"secure_cookies": True})
    client = create_app(Runtime(settings, database=house.runtime.db)).test_client()
    page = client.get("/console/sign-in", base_url="https://localhost").text
    token = re.findall(r'name="csrf-token" content="([^"]+)"', page)[0]
    form = {"csrf_token": token, "email": "x@example.com", "password": "x"}
    assert client.post("/console/sign-in", data=form, base_url="https://localhost").status_code == 422


def test_a_request_id_comes_back_as_it_was_sent(ada: Visitor) -> None:
    assert ada.get("/console/", headers={"X-Trace-Id": "abc-123.def"}).headers["X-Trace-Id"] == "abc-123.def"


def test_a_request_id_that_could_forge_a_log_is_replaced(ada: Visitor) -> None:
    answered = ada.get("/console/", headers={"X-Trace-Id": "<script>alert(1)</script>"}).headers["X-Trace-Id"]
    assert re.fullmatch(r"[0-9a-f]{32}", answered)


def test_the_root_leads_to_the_console(app: Flask) -> None:
    assert app.test_client().get("/").location == "/console/"


def test_the_page_configures_htmx_to_keep_and_evaluate_nothing(ada: Visitor) -> None:
    page = ada.get("/console/").text
    config = re.findall(r"name=\"htmx-config\" content='([^']+)'", page)[0].replace(" ", "")
    for rule in (
        '"allowEval":false', '"allowScriptTags":false', '"includeIndicatorStyles":false',
        '"historyCacheSize":0', '"historyRestoreAsHxRequest":false', '"refreshOnHistoryMiss":true',
    ):  # fmt: skip
        assert rule in config


def test_only_the_right_fingerprint_is_kept_for_a_year(visitor: Callable[[], Visitor]) -> None:
    answer = visitor().get("/static/css/base.css?v=zzz")
    assert answer.status_code == 200
    assert "immutable" not in answer.headers.get("Cache-Control", "")
