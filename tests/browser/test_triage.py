"""Steering a breaker and requeueing a whole set as people do it: with htmx, and without any script."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from effaced.breakers.model import BreakerState
from tests.browser.conftest import Desk, Site
from tests.browser.test_accessibility import violations
from tests.integration.console.test_abandoned_page import add_letters

pytestmark = pytest.mark.browser
Open = Callable[..., Desk]
HOW = pytest.mark.parametrize("script", [True, False], ids=["htmx", "without JavaScript"])


@HOW
def test_a_breaker_is_held_open_once_its_consequences_were_shown(
    site: Site, desk_at: Open, script: bool
) -> None:
    desk = desk_at(site, java_script_enabled=script)
    desk.go("/console/resolvers")
    desk.page.get_by_role("link", name="crm").first.click()
    desk.page.get_by_role("link", name="Force open").click()
    expect(desk.page.locator(".picked")).to_contain_text("Nothing is called at crm for that time.")
    desk.page.get_by_label("For how many minutes").fill("soon")
    desk.page.get_by_label("Reason").fill("They lose every second call.")
    desk.page.get_by_role("button", name="Force open").click()
    expect(desk.page.get_by_role("alert")).to_contain_text("The minutes must be a number")
    expect(desk.page.get_by_label("Reason")).to_have_value("They lose every second call.")
    desk.page.get_by_label("For how many minutes").fill("90")
    desk.page.get_by_role("button", name="Force open").click()
    expect(desk.page.locator("#live")).to_contain_text("another 1 h 30 min. Ada Okafor holds it open")
    assert site.house.runtime.breakers.current_state(resolver="crm") is BreakerState.OPEN


@HOW
def test_a_set_is_requeued_and_watched_to_its_end(site: Site, desk_at: Open, script: bool) -> None:
    add_letters(site.house, 130)
    desk = desk_at(site, java_script_enabled=script, color_scheme="dark" if script else "light")
    desk.go("/console/abandoned")
    desk.page.get_by_role("button", name="Requeue all that match this filter (130)").click()
    desk.page.get_by_label("Reason").fill("The vendor is back.")
    desk.page.get_by_role("button", name="Requeue 130").click()
    expect(desk.page.locator("#live")).to_contain_text("100 of 130")
    if script:
        assert violations(desk) == []
    site.house.runtime.advance_redrives()
    if script:
        desk.page.evaluate("htmx.trigger(document.querySelector('[data-poll]'), 'poll')")
    else:
        desk.page.get_by_role("link", name="Look again").click()
    expect(desk.page.locator("#live")).to_contain_text("130 of 130")
    expect(desk.page.locator("[data-poll]")).to_have_count(0)
