"""Steering a breaker and requeueing a whole set as people do it: with htmx, and without any script."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from effaced.breakers.model import BreakerState
from effaced.triage.redrive import advance_all
from tests.browser.conftest import Desk, Site
from tests.browser.test_accessibility import violations
from tests.integration.console.test_abandoned_page import add_letters
from tests.integration.console.test_resolver_page import give_advice

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
    expect(desk.page.locator(".picked")).to_contain_text("No calls go to crm for that time.")
    desk.page.get_by_label("For how many minutes").fill("soon")
    desk.page.get_by_label("Reason").fill("They lose every second call.")
    desk.page.get_by_role("button", name="Force open").click()
    expect(desk.page.get_by_role("alert")).to_contain_text("The minutes must be a number")
    expect(desk.page.get_by_label("Reason")).to_have_value("They lose every second call.")
    desk.page.get_by_label("For how many minutes").fill("90")
    desk.page.get_by_role("button", name="Force open").click()
    expect(desk.page.locator("#live")).to_contain_text("for another 1 h 30 min. Pinned open by Ada Okafor")
    assert site.house.runtime.breakers.current_state(resolver="crm") is BreakerState.OPEN


@HOW
def test_a_set_is_requeued_and_watched_to_its_end(site: Site, desk_at: Open, script: bool) -> None:
    add_letters(site.house, 130)
    desk = desk_at(site, java_script_enabled=script, color_scheme="dark" if script else "light")
    desk.go("/console/abandoned")
    desk.page.get_by_role("button", name="Retry all that match this filter (130)").click()
    desk.page.get_by_label("Reason").fill("The vendor is back.")
    desk.page.get_by_role("button", name="Retry 130").click()
    expect(desk.page.locator("#live")).to_contain_text("100 of 130")
    if script:
        assert violations(desk) == []
    site.house.runtime.advance_redrives()
    if script:
        desk.page.evaluate("htmx.trigger(document.querySelector('[data-poll]'), 'poll')")
    else:
        desk.page.get_by_role("link", name="Refresh").click()
    expect(desk.page.locator("#live")).to_contain_text("130 of 130")
    expect(desk.page.locator("[data-poll]")).to_have_count(0)


def test_advice_refused_for_its_reason_comes_back_with_the_focus_on_it(site: Site, desk_at: Open) -> None:
    give_advice(site.house)
    desk = desk_at(site)
    desk.go("/console/resolvers/crm")
    reason = desk.page.locator("#advice-1")
    reason.fill("  ")
    reason.press("Tab")
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_role("alert")).to_have_text("The reason is missing.")
    expect(reason).to_have_value("  ")
    expect(reason).to_be_focused()
    assert violations(desk) == []


def test_a_half_typed_reason_survives_the_note_that_is_sent_beside_it(site: Site, desk_at: Open) -> None:
    add_letters(site.house, 1)
    desk = desk_at(site)
    desk.go("/console/abandoned")
    desk.page.locator("tbody th a").click()
    desk.page.get_by_label("Reason").fill("Settled with the vendor")
    desk.page.get_by_label("Note", exact=True).fill("They called back.")
    desk.page.get_by_role("button", name="Add the note").click()
    expect(desk.page.locator(".story")).to_contain_text("They called back.")
    expect(desk.page.get_by_label("Reason")).to_have_value("Settled with the vendor")
    expect(desk.page.get_by_label("Note", exact=True)).to_have_value("")


def test_facets_and_groups_go_by_keyboard_and_keep_the_focus(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site)
    desk.go("/console/abandoned")
    group = desk.page.locator("#group-1")
    for expanded in ("true", "false"):
        group.focus()
        desk.page.keyboard.press("Enter")
        expect(group).to_have_attribute("aria-expanded", expanded)
        expect(group).to_be_focused()
    facet = desk.page.locator(".facet").get_by_role("link", name="crm")
    for chosen in (1, 0):
        facet.focus()
        desk.page.keyboard.press("Enter")
        expect(desk.page.locator(".facet [aria-current]").get_by_text("crm")).to_have_count(chosen)
        expect(facet).to_be_focused()


def test_who_takes_a_letter_goes_on_at_its_top(site: Site, desk_at: Open) -> None:
    add_letters(site.house, 1)
    desk = desk_at(site)
    desk.go("/console/abandoned")
    desk.page.locator("tbody th a").click()
    desk.page.get_by_role("button", name="Assign to me").press("Enter")
    expect(desk.page.get_by_role("button", name="Unassign")).to_be_visible()
    expect(desk.page.locator("h1")).to_be_focused()


def test_a_poll_takes_neither_the_focus_nor_the_rows_that_were_loaded(site: Site, desk_at: Open) -> None:
    add_letters(site.house, 230)
    desk = desk_at(site)
    desk.go("/console/abandoned")
    desk.page.get_by_role("button", name="Retry all that match this filter").click()
    desk.page.get_by_label("Reason").fill("The vendor is back.")
    desk.page.get_by_role("button", name="Retry 230").click()
    rows = desk.page.locator("#each tbody tr:not(.more)")
    expect(rows).to_have_count(50)
    desk.page.get_by_role("link", name="Load more").click()
    expect(rows).to_have_count(100)
    cancel = desk.page.get_by_role("button", name="Cancel the rest")
    cancel.focus()
    advance_all(site.house.runtime.db, ahead=timedelta(seconds=15))
    desk.page.evaluate("htmx.trigger(document.querySelector('[data-poll]'), 'poll')")
    expect(desk.page.locator("#live")).to_contain_text("150 of 230")
    expect(cancel).to_be_focused()
    expect(rows).to_have_count(100)
