"""axe finds nothing: on any page, in both themes, filled, empty and wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from sqlalchemy import text

from effaced.model import RequestStatus
from effaced.requests.tables import Request
from tests.browser.conftest import Desk, Site

pytestmark = pytest.mark.browser

OPTIONS = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
PAGES = [
    "",
    "requests",
    "abandoned",
    "abandoned/redrives",
    "scheduled",
    "verified",
    "retentions",
    "resolvers",
    "resolvers/mailing",
    "resolvers/mailing/steer/close",
    "datamap",
    "audit",
]
# What tests/unit/console/test_themes.py shows: these are all that a theme can change.
COLOURS = {
    "resultTypes": ["violations"],
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
# The other way round: what neither a theme nor somebody else's eyes nor a width change is looked at once.
STRUCTURE = OPTIONS | {"rules": {"color-contrast": {"enabled": False}}}
PHONE = {"width": 360, "height": 740}
Open = Callable[..., Desk]
# Of rows that differ in nothing but their words, one is enough: axe looks at every cell, and takes its time.
ONE_OF_EACH_LOOK = """() => {
  for (const list of document.querySelectorAll("tbody, ol, ul")) {
    const seen = new Set();
    for (const row of [...list.children]) {
      const parts = [row, ...row.querySelectorAll("*")];
      const look = parts.map(part => part.tagName + [...part.attributes].map(
        each => ["class", "role", "type"].includes(each.name) ? each.value : each.name)).join();
      if (seen.has(look)) row.remove();
      seen.add(look);
    }
  }
}"""
# Contrast is most of axe's work, and these have no colours that the pages with everything on them lack.
dark_in_the_drill = pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.drill)])


def violations(desk: Desk, *, dark: bool = True, options: dict[str, Any] = OPTIONS) -> list[str]:
    """What axe finds in the light theme, and then about colours in the dark one."""
    desk.page.evaluate(ONE_OF_EACH_LOOK)
    desk.page.evaluate(Axe().axe_script)
    found = _run_axe(desk, options)
    if dark:
        desk.page.emulate_media(color_scheme="dark")
        found += [f"in the dark: {each}" for each in _run_axe(desk, COLOURS)]
        desk.page.emulate_media(color_scheme="light")
    return found


def _run_axe(desk: Desk, options: dict[str, Any]) -> list[str]:
    found = desk.page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [
        f"{each['id']}: {node['html'][:160]} {node['any'][:1]}" for each in found for node in each["nodes"]
    ]


def test_every_page_with_something_on_it(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site)
    for page in PAGES:
        desk.go(f"/console/{page}")
        assert violations(desk) == [], page


def test_every_page_of_an_auditor(filled_site: Site, desk_at: Open) -> None:
    """An officer's pages with less on them, so with no colour that those lack."""
    desk = desk_at(filled_site, name="cleo")
    for page in PAGES:
        desk.go(f"/console/{page}")
        assert violations(desk, dark=False, options=STRUCTURE) == [], page


@dark_in_the_drill
def test_every_page_while_it_is_empty(empty_site: Site, desk_at: Open, dark: bool) -> None:
    desk = desk_at(empty_site)
    for page in PAGES[:-1]:
        desk.go(f"/console/{page}")
        assert violations(desk, dark=dark) == [], page
    desk.go("/console/audit?type=ERASURE_COMPLETED")
    assert violations(desk, dark=dark) == []


def test_a_request_in_every_state(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site)
    for query in (
        "status=review",
        "blocked=abandoned",
        "blocked=vendor",
        "blocked=person",
        "kind=rectification&status=review",
        "kind=rectification&blocked=abandoned",
        "status=completed",
    ):
        desk.go(f"/console/requests?{query}")
        desk.page.locator("tbody a.ref").first.click()
        desk.page.wait_for_selector("#request")
        assert violations(desk) == [], query


def test_a_data_map_with_problems_and_work_on_very_many_rows(site: Site, desk_at: Open) -> None:
    request_id = site.house.ask(3)
    with site.house.runtime.db.begin() as session:
        session.execute(text("CREATE TABLE wishes (id integer, customer_id integer)"))
        request = session.get_one(Request, request_id)
        request.status = RequestStatus.APPROVED
        request.batch_counts = {"orders": [1_220_000, 5_000_000]}
        ref = request.ref
    desk = desk_at(site)
    desk.go("/console/datamap")
    desk.page.get_by_role("heading", name="The map does not fit the database").wait_for()
    assert violations(desk) == []
    desk.go(f"/console/requests/{ref}")
    desk.page.get_by_role("progressbar", name="orders").wait_for()
    assert violations(desk) == []
    site.house.runtime.settings.datamap.write_text("version: 1")
    site.house.forget_map()
    desk.go("/console/datamap")
    desk.page.get_by_role("heading", name="The data map can't be read").wait_for()
    assert violations(desk) == []


def test_what_is_said_when_something_is_wrong(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site, name=None)
    desk.go("/console/sign-in")
    assert violations(desk) == []
    desk.page.get_by_label("E-mail address").fill("nobody@example.com")
    desk.page.get_by_label("Password").fill("wrong")
    desk.page.get_by_role("button", name="Sign in").click()
    desk.page.get_by_role("alert").wait_for()
    assert violations(desk) == []
    desk.sign_in()
    for path in (
        "/console/nothing-here",
        "/console/requests?status=lost",
        "/console/audit?ref=ER-1",
        "/console/requests?due=7d&kind=rectification",
    ):
        desk.go(path)
        assert violations(desk) == [], path


@dark_in_the_drill
def test_the_way_through_a_requeue(filled_site: Site, desk_at: Open, dark: bool) -> None:
    desk = desk_at(filled_site)
    desk.go("/console/abandoned")
    desk.page.locator("tbody input[type=checkbox]").first.check()
    desk.page.get_by_role("button", name="Retry selected").click()
    desk.page.get_by_label("Reason").wait_for()
    assert violations(desk, dark=dark) == []
    desk.page.go_back()
    desk.page.get_by_role("button", name="Retry all that match").click()
    desk.page.get_by_label("Reason").wait_for()
    assert violations(desk, dark=dark) == []
    desk.go("/console/abandoned")
    desk.page.locator(".groups a").first.click()
    desk.page.locator(".group-rows a").first.wait_for()
    assert violations(desk, dark=dark) == []
    desk.page.locator(".group-rows a").first.click()
    desk.page.get_by_role("textbox", name="Note").fill(" ")
    desk.page.get_by_role("button", name="Add the note").click()
    desk.page.get_by_role("alert").wait_for()
    assert violations(desk, dark=dark) == []


@dark_in_the_drill
def test_the_way_through_work_by_hand(filled_site: Site, desk_at: Open, dark: bool) -> None:
    desk = desk_at(filled_site)
    desk.go("/console/abandoned")
    desk.page.get_by_role("link", name="Attest").first.click()
    desk.page.get_by_label("How it was done").wait_for()
    assert violations(desk, dark=dark) == []
    desk.page.get_by_label("Why you need the reference").fill(" ")
    desk.page.get_by_role("button", name="Show the reference").click()
    desk.page.get_by_role("alert").wait_for()
    assert violations(desk, dark=dark) == []
    desk.page.get_by_label("Why you need the reference").fill("To look it up there.")
    desk.page.get_by_role("button", name="Show the reference").click()
    desk.page.locator(".revealed").wait_for()
    assert violations(desk, dark=dark) == []


@dark_in_the_drill
def test_the_forms_of_a_pause_and_of_a_second_look(filled_site: Site, desk_at: Open, dark: bool) -> None:
    desk = desk_at(filled_site)
    desk.go("/console/resolvers")
    desk.page.locator("#system-crm .steer summary").click()
    desk.page.locator("#pause-crm").fill("Their maintenance.")
    desk.page.locator("#hours-crm").fill("soon")
    desk.page.locator("#system-crm .steer button").click()
    desk.page.get_by_role("alert").wait_for()
    assert violations(desk, dark=dark) == []
    desk.go("/console/resolvers?state=paused")
    assert violations(desk, dark=dark) == []
    desk.go("/console/resolvers/payment/steer/resume")
    assert violations(desk, dark=dark) == []
    desk.go("/console/resolvers/payment")
    desk.page.locator("#change summary").first.click()
    desk.page.get_by_label("Longest wait").fill("soon")
    desk.page.get_by_label("Reason").last.fill("A trial.")
    desk.page.get_by_role("button", name="Change the policy").click()
    desk.page.get_by_role("alert").first.wait_for()
    assert violations(desk, dark=dark) == []
    desk.go("/console/verified")
    desk.page.get_by_role("link", name="Verify again").first.click()
    desk.page.get_by_label("Reason").wait_for()
    assert violations(desk, dark=dark) == []


def test_every_page_on_a_phone(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site, viewport=PHONE)
    for page in PAGES:
        desk.go(f"/console/{page}")
        assert violations(desk, dark=False, options=STRUCTURE) == [], page


def test_axe_looks_under_our_content_security_policy_too(empty_site: Site, desk_at: Open) -> None:
    desk = desk_at(empty_site)
    desk.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [found.split(":")[0] for found in violations(desk)] == ["button-name"]


def test_axe_sees_what_can_not_be_read_in_the_dark(empty_site: Site, desk_at: Open) -> None:
    desk = desk_at(empty_site)
    desk.page.evaluate("document.querySelector('h1').style.color = 'light-dark(black, #333)'")
    assert [found.split(": ")[:2] for found in violations(desk)] == [["in the dark", "color-contrast"]]


def test_no_page_is_wider_than_the_screen(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site)
    refs = desk.page.locator("a.ref").evaluate_all("links => links.map(link => link.pathname)")
    wide = []
    for path in [*(f"/console/{page}" for page in PAGES), *refs[:4]]:
        desk.go(path)
        for width in (360, 768, 1024, 1280):
            desk.page.set_viewport_size({"width": width, "height": 800})
            # A cell that is cut off by its card would not widen the page, so the tables are measured too.
            if desk.page.evaluate(
                "() => [document.documentElement, ...document.querySelectorAll('.card')]"
                ".some(each => each.scrollWidth > each.clientWidth + 1)"
            ):
                wide.append((path, width))
    assert wide == []
