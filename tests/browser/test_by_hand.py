"""Work by hand and pauses as people do them: with htmx, and without any script."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from playwright.sync_api import expect

from effaced.core import clock
from effaced.model import RequestStatus, StepOutcome
from effaced.outbox.flow import pauses
from tests.browser.conftest import NOON, Desk, Site
from tests.browser.seed import INSTRUCTIONS, ON_PAPER
from tests.integration.console.conftest import ref_of, status_of

pytestmark = pytest.mark.browser
Open = Callable[..., Desk]
PERSON = ON_PAPER[0]
NOTE = "Shredded on Monday, with Ben."


def wait_for_a_person(site: Site) -> UUID:
    request_id = site.house.ask(PERSON)
    site.house.approve(request_id)
    site.house.run()
    site.house.run()
    return request_id


def test_a_reference_is_shown_in_its_place_and_the_work_attested(site: Site, desk_at: Open) -> None:
    request_id = wait_for_a_person(site)
    desk = desk_at(site)
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    expect(desk.page.locator(".hand")).to_contain_text(INSTRUCTIONS)
    desk.page.get_by_label("Why you need the reference").fill("To find the folder.")
    desk.page.get_by_role("button", name="Show the reference").click()
    expect(desk.page.locator(".revealed")).to_contain_text(f"K-{PERSON}")
    expect(desk.page.locator(".revealed")).to_be_focused()
    desk.page.get_by_label("How it was done").fill(NOTE)
    desk.page.get_by_role("button", name="Attest that it is done").click()
    expect(desk.page.locator("#toasts")).to_contain_text("Attested. The request is completed.")
    expect(desk.page.locator("h1")).to_be_focused()
    expect(desk.page.locator(".hand")).to_have_count(0)
    assert status_of(site.house, request_id) is RequestStatus.COMPLETED
    desk.page.reload()
    expect(desk.page.locator("main")).not_to_contain_text(f"K-{PERSON}")


def test_what_is_being_typed_survives_a_poll(site: Site, desk_at: Open) -> None:
    request_id = wait_for_a_person(site)
    desk = desk_at(site)
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    desk.page.get_by_label("How it was done").fill(NOTE)
    with clock.pretend(NOON + timedelta(minutes=5)):
        desk.page.evaluate("htmx.trigger(document.querySelector('[data-poll]'), 'poll')")
        expect(desk.page.locator(".story")).to_contain_text("5 minutes ago")
    expect(desk.page.get_by_label("How it was done")).to_have_value(NOTE)


def test_without_javascript_a_reference_is_shown_and_the_work_attested(site: Site, desk_at: Open) -> None:
    request_id = wait_for_a_person(site)
    desk = desk_at(site, java_script_enabled=False)
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    desk.page.get_by_label("Why you need the reference").fill("To find the folder.")
    desk.page.get_by_role("button", name="Show the reference").click()
    expect(desk.page.locator(".revealed")).to_contain_text(f"K-{PERSON}")
    desk.page.get_by_label("How it was done").fill(NOTE)
    desk.page.get_by_role("button", name="Attest that it is done").click()
    expect(desk.page.locator(".notice.good")).to_contain_text("Attested. The request is completed.")
    assert site.house.entry(request_id, "archive").outcome is StepOutcome.ATTESTED


@pytest.mark.parametrize("script", [True, False], ids=["htmx", "without JavaScript"])
def test_a_system_is_paused_and_resumed(site: Site, desk_at: Open, script: bool) -> None:
    desk = desk_at(site, java_script_enabled=script)
    desk.go("/console/resolvers")
    for verb, said in (("pause", "crm is paused."), ("resume", "crm is resumed.")):
        desk.page.locator("#system-crm .steer summary").click()
        desk.page.locator(f"#{verb}-crm").fill("Their maintenance.")
        desk.page.locator("#system-crm .steer button").click()
        expect(desk.page.locator("#toasts" if script else ".notice.good")).to_contain_text(said)
        with site.house.runtime.db.read() as session:
            assert ("crm" in pauses(session)) is (verb == "pause")


def test_a_refused_pause_keeps_what_was_typed_and_its_form_open(site: Site, desk_at: Open) -> None:
    desk = desk_at(site)
    desk.go("/console/resolvers")
    desk.page.locator("#system-crm .steer summary").click()
    desk.page.locator("#pause-crm").fill("Their maintenance.")
    desk.page.locator("#hours-crm").fill("soon")
    desk.page.locator("#system-crm .steer button").click()
    expect(desk.page.get_by_role("alert")).to_contain_text("The hours of a pause must be a number.")
    expect(desk.page.locator("#pause-crm")).to_have_value("Their maintenance.")
    expect(desk.page.locator("#hours-crm")).to_be_focused()
