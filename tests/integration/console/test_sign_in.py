"""Coming in and going out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from flask import Flask

from effaced import clock
from effaced.accounts.officers import set_password
from effaced.accounts.tables import Officer
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, NOON, Visitor, path_of

Anybody = Callable[[], Visitor]


def test_every_page_asks_a_stranger_to_sign_in(app: Flask, visitor: Anybody) -> None:
    open_to_all = {"console.sign_in.form"}
    stranger = visitor()
    for rule in app.url_map.iter_rules():
        if not rule.endpoint.startswith("console.") or "GET" not in (rule.methods or ()):
            continue
        if rule.endpoint not in open_to_all:
            path = path_of(rule)
            answer = stranger.get(path)
            assert answer.status_code == 303, path
            assert answer.location.startswith("/console/sign-in"), path


def test_every_form_asks_a_stranger_to_sign_in(app: Flask, visitor: Anybody) -> None:
    open_to_all = {"console.sign_in.send", "console.theme.choose"}
    stranger = visitor()
    stranger.get("/console/sign-in")
    for rule in app.url_map.iter_rules():
        if (
            rule.endpoint.startswith("console.")
            and "POST" in (rule.methods or ())
            and rule.endpoint not in open_to_all
        ):
            path = path_of(rule)
            assert stranger.post(path).location == "/console/sign-in", path


def test_signing_in_leads_back_to_the_page_asked_for(visitor: Anybody) -> None:
    someone = visitor()
    asked = someone.get("/console/requests?status=review").location
    assert asked == "/console/sign-in?next=/console/requests?status%3Dreview"
    answer = someone.sign_in("ada", next="/console/requests?status=review")
    assert answer.location == "/console/requests?status=review"


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/console/", "//evil.example/", "/\\evil.example", "javascript:1"]
)
def test_signing_in_never_leads_to_another_site(visitor: Anybody, elsewhere: str) -> None:
    location = visitor().sign_in("ada", next=elsewhere).location
    assert location.startswith("/console/")
    assert "evil" not in location


def test_a_wrong_password_is_refused(visitor: Anybody) -> None:
    answer = visitor().sign_in("ada", password="wrong password")
    assert answer.status_code == 422
    assert "E-mail address or password is wrong" in answer.text


def test_what_was_typed_as_address_stays_in_the_form_and_the_password_does_not(visitor: Anybody) -> None:
    page = visitor().sign_in("ada", password="wrong password").text
    assert 'value="ada@example.com"' in page
    assert "wrong password" not in page.replace("wrong passwords", "")


def test_the_sign_in_page_sends_whoever_is_in_to_the_overview(ada: Visitor) -> None:
    assert ada.get("/console/sign-in").location == "/console/"


def test_signing_out_ends_the_session(ada: Visitor) -> None:
    assert ada.post("/console/sign-out").location == "/console/sign-in"
    assert ada.get("/console/").status_code == 303


def test_a_session_ends_after_its_hours_however_busy_it_was(house: House, ada: Visitor) -> None:
    hours = house.runtime.settings.session_hours
    for hour in range(1, hours):
        with clock.pretend(NOON + timedelta(hours=hour)):
            assert ada.get("/console/").status_code == 200
    with clock.pretend(NOON + timedelta(hours=hours)):
        assert ada.get("/console/").status_code == 303


def test_a_new_password_ends_the_sessions_of_the_old_one(house: House, ada: Visitor) -> None:
    with house.runtime.db.begin() as session:
        officer = session.get_one(Officer, house.ada.id)
        set_password(session, officer, "an entirely new password", actor="cli")
    assert ada.get("/console/").status_code == 303


def test_a_deactivated_officer_is_out_at_once(house: House, ada: Visitor) -> None:
    with house.runtime.db.begin() as session:
        session.get_one(Officer, house.ada.id).active = False
    assert ada.get("/console/").status_code == 303


def test_an_htmx_call_without_a_session_is_sent_to_sign_in_by_header(visitor: Anybody) -> None:
    came_from = {"HX-Current-URL": "http://localhost/console/audit?type=SIGNED_IN"}
    answer = visitor().get("/console/audit?after=x", headers=HTMX | came_from)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/console/sign-in?next=/console/audit?type%3DSIGNED_IN"
    assert answer.text == ""


def test_a_cookie_copied_before_the_sign_out_opens_nothing(ada: Visitor, visitor: Anybody) -> None:
    cookie = ada.client.get_cookie("effaced_session")
    assert cookie is not None
    ada.post("/console/sign-out")
    thief = visitor()
    thief.client.set_cookie("effaced_session", cookie.value)
    assert thief.get("/console/requests").status_code == 303


@pytest.mark.parametrize("url", ["http://[", "//[", "http://[::1"])
def test_a_next_that_is_no_url_leads_to_the_overview(visitor: Anybody, url: str) -> None:
    stranger = visitor()
    assert stranger.get("/console/sign-in", query_string={"next": url}).status_code == 200
    answer = stranger.get("/console/requests", headers={**HTMX, "HX-Current-URL": url})
    assert answer.status_code == 401
