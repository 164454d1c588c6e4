"""The pages about the API, in a browser: under our policy, in both themes, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from effaced.api.catalogue import OPERATIONS
from effaced.api.openapi.errors import FIELD_CODES, PROBLEM_TYPES
from tests.browser.conftest import Desk, Site
from tests.browser.test_accessibility import violations

pytestmark = pytest.mark.browser
Open = Callable[..., Desk]
SIZES = [{"width": 1280, "height": 900}, {"width": 390, "height": 800}]


def wider_than_the_screen(desk: Desk) -> bool:
    wide: bool = desk.page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return wide


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: size["width"])
def test_every_operation_is_shown_under_our_policy(
    empty_site: Site, desk_at: Open, scheme: str, size: dict[str, int]
) -> None:
    desk = desk_at(empty_site, name=None, color_scheme=scheme, viewport=size)
    asked: list[str] = []
    desk.page.on("request", lambda request: asked.append(request.url))
    desk.go("/api/v1/docs")
    expect(desk.page.locator(".opblock")).to_have_count(len(OPERATIONS))
    desk.page.locator("#operations-Requests-create_request button.opblock-summary-control").click()
    expect(desk.page.locator(".opblock-body")).to_contain_text("requests:write")
    expect(desk.page.locator(".opblock-body")).to_contain_text("by e-mail, 2 March")
    assert not wider_than_the_screen(desk)
    # data: is what the style sheet brings along.
    assert [url for url in asked if not url.startswith((empty_site.url, "data:"))] == []


def test_a_call_can_be_tried_with_a_key(empty_site: Site, desk_at: Open) -> None:
    desk = desk_at(empty_site, name=None)
    desk.go("/api/v1/docs")
    block = desk.page.locator("#operations-Requests-list_requests")
    block.locator("button.opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    block.get_by_role("button", name="Execute").click()
    expect(block.locator(".live-responses-table")).to_contain_text("unauthenticated")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size["width"])
def test_the_page_of_errors_explains_all_of_them_and_everybody_can_read_it(
    empty_site: Site, desk_at: Open, size: dict[str, int]
) -> None:
    desk = desk_at(empty_site, name=None, viewport=size)
    desk.go("/api/v1/docs/errors#refused")
    expect(desk.page.locator("#refused")).to_be_in_viewport()
    expect(desk.page.locator("main section")).to_have_count(len(PROBLEM_TYPES))
    expect(desk.page.locator("main dt")).to_have_count(len(FIELD_CODES))
    assert not wider_than_the_screen(desk)
    assert violations(desk) == []
