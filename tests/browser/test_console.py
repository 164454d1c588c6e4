"""The console as people use it: by mouse, by keyboard, with htmx and without any script."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

from effaced.core import clock
from effaced.core.errors import ResolverError
from effaced.model import RequestStatus
from tests.browser.conftest import NOON, Desk, Site
from tests.integration.console.conftest import add_requests, ref_of, status_of

pytestmark = pytest.mark.browser
Open = Callable[..., Desk]
REASON = "Identity checked by telephone."


def tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} can't be reached by Tab")


# --- by keyboard ---


def test_a_request_is_approved_by_keyboard_alone(site: Site, desk_at: Open) -> None:
    request_id = site.house.ask(1)
    desk = desk_at(site)
    desk.go("/console/requests?status=review")
    tab_to(desk.page, "tbody a.ref")
    desk.page.keyboard.press("Enter")
    desk.page.wait_for_selector("#request")
    tab_to(desk.page, "#reason")
    desk.page.keyboard.type(REASON)
    tab_to(desk.page, "#approve button[type=submit]", most=1)
    # A poll between the question and its answer makes nobody forget who had the focus.
    desk.page.evaluate(
        "document.addEventListener('htmx:beforeSend', () => htmx.trigger('#live', 'poll'), {once: true})"
    )
    desk.page.keyboard.press("Enter")
    expect(desk.page.locator("#toasts")).to_contain_text("Approved and executed")
    assert status_of(site.house, request_id) is RequestStatus.RUNNING
    expect(desk.page.locator("h1")).to_be_focused()
    expect(desk.page.locator(".story")).to_contain_text("Approved (1 of 1).")


def test_the_skip_link_is_first_and_leads_past_the_navigation(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site)
    desk.go("/console/requests")
    desk.page.keyboard.press("Tab")
    desk.page.keyboard.press("Enter")
    desk.page.keyboard.press("Tab")
    assert desk.page.evaluate("document.activeElement.closest('main') !== null")


def test_the_focus_can_be_seen(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site)
    tab_to(desk.page, "nav a[href='/console/requests']")
    assert desk.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


# --- with htmx ---


def test_a_refused_approval_keeps_what_was_typed_and_points_at_the_field(site: Site, desk_at: Open) -> None:
    ref = ref_of(site.house, site.house.ask(1))
    desk = desk_at(site)
    desk.go(f"/console/requests/{ref}")
    desk.page.get_by_label("Reason").fill("   ")
    desk.page.get_by_role("button", name="Approve and erase").click()
    expect(desk.page.get_by_role("alert")).to_have_text("The reason is missing.")
    expect(desk.page.get_by_label("Reason")).to_be_focused()


def test_load_more_appends_rows_and_puts_the_focus_on_the_first_new_one(site: Site, desk_at: Open) -> None:
    add_requests(site.house, 70, due_in=timedelta(days=9))
    desk = desk_at(site)
    desk.go("/console/requests")
    rows = desk.page.locator("tbody tr:not(.more)")
    expect(rows).to_have_count(50)
    desk.page.get_by_role("link", name="Load more").focus()
    desk.page.keyboard.press("Enter")
    expect(rows).to_have_count(70)
    expect(rows.nth(50).locator("a.ref")).to_be_focused()
    assert desk.page.url.endswith("/console/requests")


def test_a_filter_changes_the_list_and_the_address_and_keeps_the_focus(
    filled_site: Site, desk_at: Open
) -> None:
    desk = desk_at(filled_site)
    desk.go("/console/requests")
    chosen = desk.page.get_by_label("Status")
    chosen.focus()
    chosen.select_option("review")
    expect(desk.page.locator(".summary")).to_contain_text("6 requests: waiting for approval.")
    assert desk.page.url.endswith("/console/requests?status=review")
    expect(chosen).to_be_focused()


def test_going_back_shows_the_list_before_the_filter(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site)
    desk.go("/console/requests")
    desk.page.get_by_label("Status").select_option("review")
    desk.page.wait_for_url("**/console/requests?status=review")
    desk.page.go_back()
    expect(desk.page.locator(".summary")).to_contain_text("requests: open.")


def test_a_person_is_found_and_what_was_typed_is_nowhere(site: Site, desk_at: Open) -> None:
    ref = ref_of(site.house, site.house.ask(1))
    desk = desk_at(site)
    desk.go("/console/requests")
    desk.page.get_by_label("Identifier").select_option("email")
    desk.page.get_by_label("Value").fill("p1@example.com")
    desk.page.get_by_role("button", name="Find").click()
    desk.page.wait_for_url("**/console/requests?subject=*")
    expect(desk.page.locator("tbody a.ref")).to_have_text(ref)
    assert "p1@" not in unquote(desk.page.url)
    stored = desk.page.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "p1@example.com" not in stored
    assert ref not in stored


def test_requeueing_shows_what_became_of_each(site: Site, desk_at: Open) -> None:
    site.house.script.answers["crm", "1"] = lambda: ResolverError("no", code="http_400")
    site.house.approve(site.house.ask(1))
    site.house.run()
    desk = desk_at(site)
    desk.go("/console/abandoned")
    selected = desk.page.get_by_role("button", name="Retry selected")
    expect(selected).to_be_disabled()
    desk.page.get_by_label("Choose crm").check()
    expect(selected).to_have_accessible_name("Retry selected (1)")
    selected.click()
    desk.page.get_by_label("Reason").fill("The vendor is back.")
    desk.page.get_by_role("button", name="Retry 1").click()
    results = desk.page.get_by_role("heading", name="1 of 1 retried")
    expect(results).to_be_focused()


def test_a_session_that_ended_leads_to_sign_in_and_back(site: Site, desk_at: Open) -> None:
    add_requests(site.house, 60, due_in=timedelta(days=9))
    desk = desk_at(site)
    desk.go("/console/requests")
    desk.page.context.clear_cookies()
    desk.page.get_by_role("link", name="Load more").click()
    desk.page.wait_for_url("**/console/sign-in?next=/console/requests")


def test_an_error_is_a_toast_that_can_be_closed(site: Site, desk_at: Open) -> None:
    add_requests(site.house, 60, due_in=timedelta(days=9))
    desk = desk_at(site)
    desk.go("/console/requests")
    desk.page.route(
        "**/console/requests?after=*", lambda route: route.fulfill(status=500, body="<h1>no</h1>")
    )
    desk.page.get_by_role("link", name="Load more").click()
    expect(desk.page.locator("#toasts")).to_contain_text("That did not work.")
    desk.page.get_by_role("button", name="Close this message").click()
    expect(desk.page.locator(".toast")).to_have_count(0)
    expect(desk.page.locator("tbody tr:not(.more)")).to_have_count(50)


# --- live ---


def polls(page: Page) -> list[str]:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "seen=" in request.url else None)
    return asked


def test_a_request_page_follows_what_happens_and_stops_when_all_is_done(site: Site, desk_at: Open) -> None:
    request_id = site.house.ask(1)
    site.house.approve(request_id)
    desk = desk_at(site)
    desk.page.clock.install()
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    asked = polls(desk.page)
    expect(desk.page.locator(".facts .badge")).to_have_text("Running")
    site.house.run()
    desk.page.clock.run_for(4_000)
    expect(desk.page.locator(".facts .badge")).to_have_text("Completed")
    expect(desk.page.locator(".story")).to_contain_text("Every external call has succeeded.")
    before = len(asked)
    desk.page.clock.run_for(300_000)
    assert len(asked) == before


COUNT_POLLS = """() => {
  const body = document.body.dataset;
  document.addEventListener("htmx:beforeRequest", () => { body.asked = Number(body.asked ?? 0) + 1; });
  document.addEventListener("htmx:afterRequest", () => { body.answered = body.asked; });
}"""


def test_polling_slows_down_while_nothing_changes(site: Site, desk_at: Open) -> None:
    request_id = site.house.ask(1)
    desk = desk_at(site)
    desk.page.clock.install()
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    desk.page.evaluate(COUNT_POLLS)
    waits = []
    for number in range(1, 5):
        seconds = 0
        while int(desk.page.evaluate("document.body.dataset.asked ?? 0")) < number:
            desk.page.clock.run_for(1_000)
            seconds += 1
            assert seconds < 90, "it polls at least once a minute"
        expect(desk.page.locator("body")).to_have_attribute("data-answered", str(number))
        waits.append(seconds)
    assert waits == sorted(waits)
    assert waits[-1] > 2 * waits[0]


def test_polling_pauses_while_the_tab_is_hidden(site: Site, desk_at: Open) -> None:
    request_id = site.house.ask(1)
    desk = desk_at(site)
    desk.page.clock.install()
    desk.page.add_init_script(
        "Object.defineProperty(document, 'hidden', {get: () => window.isHidden === true})"
    )
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    turn = "hide => { window.isHidden = hide; document.dispatchEvent(new Event('visibilitychange')); }"
    desk.page.evaluate(turn, True)
    asked = polls(desk.page)
    desk.page.clock.run_for(120_000)
    assert asked == []
    with desk.page.expect_request("**seen=*"):
        desk.page.evaluate(turn, False)


def test_what_is_being_typed_survives_a_poll(site: Site, desk_at: Open) -> None:
    request_id = site.house.ask(1, key=site.house.two_eyes)
    desk = desk_at(site)
    desk.page.clock.install()
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    desk.page.get_by_label("Reason").fill("half a sen")
    site.house.approve(request_id, by=site.house.ben)
    desk.page.clock.run_for(4_000)
    expect(desk.page.locator(".story")).to_contain_text("Approved (1 of 2).")
    expect(desk.page.get_by_label("Reason")).to_have_value("half a sen")


def test_what_was_done_stays_unfolded_over_a_poll(site: Site, desk_at: Open) -> None:
    request_id = site.house.ask(1)
    site.house.approve(request_id)
    desk = desk_at(site)
    desk.page.clock.install()
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    done = desk.page.locator("#done")
    expect(done).to_contain_text("kept by law in invoices")
    done.locator("summary").click()
    expect(done.get_by_role("row", name="orders")).to_be_visible()
    site.house.run()
    desk.page.clock.run_for(4_000)
    expect(desk.page.locator(".story")).to_contain_text("Every external call has succeeded.")
    expect(done.get_by_role("row", name="orders")).to_be_visible()


# --- without any script ---


def test_a_table_is_found_by_keyboard_without_javascript(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site, java_script_enabled=False)
    desk.go("/console/datamap")
    desk.page.get_by_label("Table or column").press_sequentially("billed")
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_role("table").get_by_role("rowheader")).to_have_text(["invoices"])
    desk.page.get_by_role("link", name="Show all").click()
    expect(desk.page.get_by_role("table").get_by_role("rowheader")).to_have_count(3)


def test_without_javascript_rows_are_looked_at_masked(site: Site, desk_at: Open) -> None:
    desk = desk_at(site, java_script_enabled=False)
    desk.go(f"/console/requests/{ref_of(site.house, site.house.ask(3))}")
    desk.page.get_by_role("link", name="Show masked rows").click()
    expect(desk.page.get_by_role("list", name="Rows of customers, masked")).to_contain_text("••••")
    desk.page.get_by_role("link", name="Hide rows").click()
    expect(desk.page.get_by_role("list", name="Rows of customers, masked")).to_have_count(0)


def test_without_javascript_a_request_is_approved(site: Site, desk_at: Open) -> None:
    request_id = site.house.ask(1)
    desk = desk_at(site, java_script_enabled=False)
    desk.go(f"/console/requests/{ref_of(site.house, request_id)}")
    desk.page.get_by_label("Reason").fill(REASON)
    desk.page.get_by_role("button", name="Approve and erase").click()
    expect(desk.page.locator(".notice")).to_have_text("Approved and executed in your database.")
    assert status_of(site.house, request_id) is RequestStatus.RUNNING


def test_without_javascript_load_more_is_a_link_to_the_next_rows(site: Site, desk_at: Open) -> None:
    add_requests(site.house, 70, due_in=timedelta(days=9))
    desk = desk_at(site, java_script_enabled=False)
    desk.go("/console/requests")
    desk.page.get_by_role("link", name="Load more").click()
    expect(desk.page.locator("tbody tr")).to_have_count(20)
    desk.page.get_by_role("link", name="Back to the top").click()
    expect(desk.page.locator("tbody tr:not(.more)")).to_have_count(50)


def test_without_javascript_filters_and_themes_are_forms(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site, java_script_enabled=False)
    desk.go("/console/requests")
    desk.page.get_by_label("Status").select_option("review")
    desk.page.get_by_role("button", name="Apply").click()
    expect(desk.page.locator(".summary")).to_contain_text("6 requests: waiting for approval.")
    desk.page.get_by_role("button", name="Dark").click()
    expect(desk.page.locator("html")).to_have_attribute("data-theme", "dark")
    assert re.search(r"/console/requests\?status=review", desk.page.url)


def test_the_pages_live_in_the_time_of_the_house(filled_site: Site, desk_at: Open) -> None:
    assert clock.now() == NOON
    desk = desk_at(filled_site)
    desk.go("/console/audit")
    expect(desk.page.locator("tbody tr").first).to_contain_text("2 Mar 2026, 13:00")
