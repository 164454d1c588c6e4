"""Coming in and going out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from flask import Flask

from effaced.accounts.officers import set_password
from effaced.accounts.tables import Officer
from effaced.core import clock
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, NOON, Visitor, path_of

pytestmark = pytest.mark.usefixtures("cheap_passwords")

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


class TestLimits:
    def test_too_many_wrong_passwords_are_told_to_wait(self, visitor: Anybody) -> None:
        stranger = visitor()
        answers = [stranger.sign_in("ada", password="wrong password") for _ in range(6)]
        assert [each.status_code for each in answers] == [422] * 5 + [429]
        assert answers[5].headers["Retry-After"] == "900"
        assert "Try again in 15 minutes" in answers[5].text

    def test_a_browser_that_has_signed_in_before_is_counted_by_itself(self, visitor: Anybody) -> None:
        officer, stranger = visitor(), visitor()
        officer.sign_in("ada")
        officer.post("/console/sign-out")
        for _ in range(6):
            stranger.sign_in("ada", password="wrong password")
        assert stranger.sign_in("ada").status_code == 429
        assert officer.sign_in("ada").status_code == 303

    def test_the_mark_of_a_browser_opens_nothing_and_counts_for_its_officer_only(
        self, visitor: Anybody
    ) -> None:
        officer, stranger = visitor(), visitor()
        officer.sign_in("ada")
        mark = officer.client.get_cookie("effaced_device", path="/console/sign-in")
        assert mark is not None
        stranger.client.set_cookie("effaced_device", mark.value, path="/console/sign-in")
        assert stranger.get("/console/").status_code == 303
        for _ in range(5):
            visitor().sign_in("ben", password="wrong password")
        assert stranger.sign_in("ben").status_code == 429

    @pytest.mark.parametrize("forged", ["", "x", "WyIxIiwiMiJd.AAAA", "bnVsbA.AAAA"])
    def test_a_forged_mark_is_none(self, visitor: Anybody, forged: str) -> None:
        stranger = visitor()
        stranger.client.set_cookie("effaced_device", forged, path="/console/sign-in")
        assert stranger.sign_in("ada").status_code == 303


class TestAddress:
    """The address that limits are counted for, seen by who has to wait after five wrong passwords."""

    HEADER = "X-Real-IP"

    def throttled(self, visitor: Anybody, *addresses: str) -> list[bool]:
        for _ in range(5):
            self.attempt(visitor(), addresses[0])
        return [self.attempt(visitor(), each) == 429 for each in addresses]

    def attempt(self, someone: Visitor, address: str) -> int:
        someone.get("/console/sign-in")
        form: dict[str, object] = {"email": "ada@example.com", "password": "wrong password"}
        return someone.post("/console/sign-in", form, headers={self.HEADER: address}).status_code

    def test_is_not_what_the_client_says(self, visitor: Anybody) -> None:
        assert self.throttled(visitor, "192.0.2.1", "192.0.2.2") == [True, True]

    def test_is_in_the_header_that_the_setting_names(self, house: House, visitor: Anybody) -> None:
        behind_proxy(house, self.HEADER)
        assert self.throttled(visitor, "192.0.2.1", "192.0.2.2") == [True, False]

    def test_is_the_one_that_the_proxy_added_last(self, house: House, visitor: Anybody) -> None:
        behind_proxy(house, self.HEADER)
        seen = self.throttled(visitor, "192.0.2.1", "198.51.100.1, 192.0.2.1", "192.0.2.1, 198.51.100.1")
        assert seen == [True, True, False]

    def test_of_version_6_is_the_network_of_one_customer(self, house: House, visitor: Anybody) -> None:
        behind_proxy(house, self.HEADER)
        seen = self.throttled(visitor, "2001:db8:1:2::1", "2001:db8:1:2:3::9", "2001:db8:1:3::1")
        assert seen == [True, True, False]


def behind_proxy(house: House, header: str) -> None:
    settings = house.runtime.settings
    house.runtime.settings = settings.model_copy(update={"client_address_header": header})
