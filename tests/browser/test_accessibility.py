"""axe finds nothing: on any page, in both themes, filled, empty and wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe

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
    "resolvers",
    "resolvers/mailing",
    "resolvers/mailing/steer/close",
    "audit",
]
THEMES = ["light", "dark"]
PHONE = {"width": 360, "height": 740}
Open = Callable[..., Desk]


def violations(desk: Desk) -> list[str]:
    found = Axe().run(desk.page, options=OPTIONS).response["violations"]
    return [
        f"{each['id']}: {node['html'][:160]} {node['any'][:1]}" for each in found for node in each["nodes"]
    ]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["ada", "cleo"])
def test_every_page_with_something_on_it(filled_site: Site, desk_at: Open, theme: str, name: str) -> None:
    desk = desk_at(filled_site, name=name, color_scheme=theme)
    for page in PAGES:
        desk.go(f"/console/{page}")
        assert violations(desk) == [], page


@pytest.mark.parametrize("theme", THEMES)
def test_every_page_while_it_is_empty(empty_site: Site, desk_at: Open, theme: str) -> None:
    desk = desk_at(empty_site, color_scheme=theme)
    for page in PAGES[:-1]:
        desk.go(f"/console/{page}")
        assert violations(desk) == [], page
    desk.go("/console/audit?type=ERASURE_COMPLETED")
    assert violations(desk) == []


@pytest.mark.parametrize("theme", THEMES)
def test_a_request_in_every_state(filled_site: Site, desk_at: Open, theme: str) -> None:
    desk = desk_at(filled_site, color_scheme=theme)
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


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_said_when_something_is_wrong(filled_site: Site, desk_at: Open, theme: str) -> None:
    desk = desk_at(filled_site, name=None, color_scheme=theme)
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


@pytest.mark.parametrize("theme", THEMES)
def test_the_way_through_a_requeue(filled_site: Site, desk_at: Open, theme: str) -> None:
    desk = desk_at(filled_site, color_scheme=theme)
    desk.go("/console/abandoned")
    desk.page.locator("tbody input[type=checkbox]").first.check()
    desk.page.get_by_role("button", name="Requeue selected").click()
    desk.page.get_by_label("Reason").wait_for()
    assert violations(desk) == []
    desk.page.go_back()
    desk.page.get_by_role("button", name="Requeue all that match").click()
    desk.page.get_by_label("Reason").wait_for()
    assert violations(desk) == []
    desk.go("/console/abandoned")
    desk.page.locator(".groups a").first.click()
    desk.page.locator(".group-rows a").first.wait_for()
    assert violations(desk) == []
    desk.page.locator(".group-rows a").first.click()
    desk.page.get_by_role("textbox", name="Note").fill(" ")
    desk.page.get_by_role("button", name="Add the note").click()
    desk.page.get_by_role("alert").wait_for()
    assert violations(desk) == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_way_through_work_by_hand(filled_site: Site, desk_at: Open, theme: str) -> None:
    desk = desk_at(filled_site, color_scheme=theme)
    desk.go("/console/abandoned")
    desk.page.get_by_role("link", name="Done by hand").first.click()
    desk.page.get_by_label("How it was done").wait_for()
    assert violations(desk) == []
    desk.page.get_by_label("Why you need the reference").fill(" ")
    desk.page.get_by_role("button", name="Show the reference").click()
    desk.page.get_by_role("alert").wait_for()
    assert violations(desk) == []
    desk.page.get_by_label("Why you need the reference").fill("To look it up there.")
    desk.page.get_by_role("button", name="Show the reference").click()
    desk.page.locator(".revealed").wait_for()
    assert violations(desk) == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_forms_of_a_pause_and_of_a_second_look(filled_site: Site, desk_at: Open, theme: str) -> None:
    desk = desk_at(filled_site, color_scheme=theme)
    desk.go("/console/resolvers")
    desk.page.locator("#system-crm .steer summary").click()
    desk.page.locator("#pause-crm").fill("Their maintenance.")
    desk.page.locator("#hours-crm").fill("soon")
    desk.page.locator("#system-crm .steer button").click()
    desk.page.get_by_role("alert").wait_for()
    assert violations(desk) == []
    desk.go("/console/resolvers?state=paused")
    assert violations(desk) == []
    desk.go("/console/verified")
    desk.page.get_by_role("link", name="Look again").first.click()
    desk.page.get_by_label("Reason").wait_for()
    assert violations(desk) == []


def test_every_page_on_a_phone(filled_site: Site, desk_at: Open) -> None:
    desk = desk_at(filled_site, viewport=PHONE)
    for page in PAGES:
        desk.go(f"/console/{page}")
        assert violations(desk) == [], page


def test_axe_looks_under_our_content_security_policy_too(empty_site: Site, desk_at: Open) -> None:
    desk = desk_at(empty_site)
    desk.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [found.split(":")[0] for found in violations(desk)] == ["button-name"]


@pytest.mark.parametrize("width", [360, 768, 1024, 1280])
def test_no_page_is_wider_than_the_screen(filled_site: Site, desk_at: Open, width: int) -> None:
    desk = desk_at(filled_site, viewport={"width": width, "height": 800})
    refs = desk.page.locator("a.ref").evaluate_all("links => links.map(link => link.pathname)")
    wide = {}
    for path in [*(f"/console/{page}" for page in PAGES), *refs[:4]]:
        desk.go(path)
        # A cell that is cut off by its card would not widen the page, so the tables are measured too.
        wide[path] = desk.page.evaluate(
            "() => [document.documentElement, ...document.querySelectorAll('.card')]"
            ".some(each => each.scrollWidth > each.clientWidth + 1)"
        )
    assert [path for path, is_wide in wide.items() if is_wide] == []
