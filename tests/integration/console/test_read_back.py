"""Whether a system's read-back is proven: on its page, in the list, and beside what it confirmed."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from effaced.core import clock
from effaced.model import CheckReason, Verification
from effaced.resolvers.check import Checked
from effaced.resolvers.read_backs import record_check
from tests.browser.seed import House
from tests.integration.console.conftest import NOON, Visitor, ref_of

PAGE = "/console/resolvers/crm"


def read(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def check(house: House, reason: CheckReason) -> None:
    runtime = house.runtime
    with clock.pretend(NOON - timedelta(days=1)), runtime.db.begin() as session:
        crm = runtime.registry.get("crm")
        record_check(session, runtime.keyring, crm, Checked("crm", reason, ""), actor="cli")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (None, "Read-back Unproven It was never checked."),
        (
            CheckReason.CANARY_SEEN,
            "Read-back Proven It saw a test person and did not see an invented one. "
            "Last checked 1 Mar 2026, 12:00 (1 day ago).",
        ),
        (CheckReason.NO_CANARY, "Read-back Unproven It saw no test person"),
        (CheckReason.STILL_PRESENT, "Read-back Check failed It still found the test person"),
    ],
)
def test_a_system_s_page_says_how_far_its_read_back_is_proven(
    house: House, ada: Visitor, reason: CheckReason | None, said: str
) -> None:
    if reason:
        check(house, reason)
    assert said in read(ada.get(PAGE).text)


def test_the_list_says_it_for_each_system_that_has_a_read_back(house: House, ada: Visitor) -> None:
    check(house, CheckReason.CANARY_SEEN)
    page = ada.get("/console/resolvers").text
    said = {
        name: found[1] if (found := re.search(r"Read-back (\w+)", read(part))) else None
        for name, part in re.findall(r'id="counts-(\w+)"(.*?)</dl>', page, re.DOTALL)
    }
    assert (said["crm"], said["files"], said["mailing"], said["archive"]) == (
        "Proven",
        "Unproven",
        "none",
        None,
    )


@pytest.mark.parametrize(
    ("reason", "shown"),
    [(CheckReason.NO_CANARY, {"crm", "files"}), (CheckReason.CANARY_SEEN, {"files"})],
)
def test_a_step_that_an_unproven_read_back_confirmed_says_so(
    house: House, ada: Visitor, reason: CheckReason, shown: set[str]
) -> None:
    check(house, reason)
    request_id = house.ask(7)
    house.approve(request_id)
    house.run()
    assert house.entry(request_id, "crm").verification is Verification.CONFIRMED
    page = ada.get(f"/console/requests/{ref_of(house, request_id)}").text
    linked = re.findall(r'href="/console/resolvers/(\w+)">(?:<[^>]*>)*read-back unproven', page)
    assert set(linked) == shown
