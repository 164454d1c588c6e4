"""Until every read-back is confirmed or attested a request is open, and no page says otherwise."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from effaced.core.clock import ManualClock
from effaced.core.errors import ResolverError
from effaced.model import RequestStatus
from effaced.resolvers.protocols import AlreadyAbsent, Scheduled
from effaced.triage.attest import attest
from tests.browser.seed import House
from tests.integration.console.conftest import NOON, Visitor, ref_of, seated, status_of
from tests.integration.console.test_overview_page import needs

REASON = "The vendor confirmed by e-mail."
NOT_VERIFIED = "/console/requests?status=not_verified"


def erase(house: House, person: int) -> UUID:
    request_id = house.ask(person)
    house.approve(request_id)
    house.run()
    return request_id


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def page_of(house: House, visitor: Visitor, request_id: UUID) -> str:
    return words(visitor.get(f"/console/requests/{ref_of(house, request_id)}").text)


def attest_by_hand(house: House, request_id: UUID, resolver: str) -> None:
    with house.runtime.db.begin() as session:
        entry_id = house.entry(request_id, resolver).entry_id
        attest(session, house.runtime.keyring, entry_id, actor=f"officer:{house.ada.id}", reason=REASON)


class TestStillPresent:
    def test_the_request_is_shown_as_not_verified_everywhere(self, house: House, ada: Visitor) -> None:
        house.script.still_there.add(("files", "1"))
        request_id = erase(house, 1)
        page = page_of(house, ada, request_id)
        assert "State Not verified" in page
        assert "Completed" not in page
        assert "Verified Blocked 1 confirmed, 2 on the vendor's word, 1 still present" in page
        listed = words(ada.get("/console/requests").text)
        assert "Not verified 4/4" in listed
        assert "Not verified: files" in listed
        assert "Not verified" in words(ada.get("/console/").text.split('id="h-next"')[1])

    def test_number_and_list_are_one_query(self, house: House, ada: Visitor) -> None:
        house.script.still_there |= {("files", "1"), ("files", "2")}
        house.script.silent.add(("crm", "3"))
        open_ = {ref_of(house, erase(house, person)) for person in (1, 2, 3)}
        erase(house, 4)
        assert needs(ada)["Not verified"] == (3, NOT_VERIFIED)
        assert set(ada.refs(NOT_VERIFIED)) == open_
        assert set(ada.refs("/console/requests?blocked=verification")) == open_
        assert ada.refs("/console/requests?status=running") == []
        assert set(ada.refs("/console/requests")) == open_

    def test_a_request_with_calls_left_is_running_and_blocked_by_it(self, house: House, ada: Visitor) -> None:
        house.script.still_there.add(("files", "1"))
        house.script.answers["crm", "1"] = lambda: ResolverError("no", code="http_400")
        ref = ref_of(house, erase(house, 1))
        assert ada.refs(NOT_VERIFIED) == []
        assert ada.refs("/console/requests?status=running") == [ref]
        assert ada.refs("/console/requests?blocked=verification") == [ref]
        assert ada.refs("/console/requests?blocked=abandoned") == [ref]

    def test_a_failed_read_back_alone_is_not_listed_as_abandoned(self, house: House, ada: Visitor) -> None:
        house.script.still_there.add(("files", "1"))
        erase(house, 1)
        assert ada.refs("/console/requests?blocked=abandoned") == []

    def test_attesting_completes_it_and_says_so(self, house: House, ada: Visitor) -> None:
        house.script.still_there.add(("files", "1"))
        request_id = erase(house, 1)
        call = (
            f"/console/requests/{ref_of(house, request_id)}/calls/{house.entry(request_id, 'files').entry_id}"
        )
        ada.get(call)
        ada.post(f"{call}/attest", {"note": REASON})
        assert status_of(house, request_id) is RequestStatus.COMPLETED
        page = page_of(house, ada, request_id)
        assert "Attested. The request is completed." in page
        assert "State Completed" in page
        assert "Completed: nothing is left to verify." in page
        assert ada.refs(NOT_VERIFIED) == []


def test_a_read_back_that_is_due_keeps_the_request_open(house: House, ada: Visitor) -> None:
    house.script.silent.add(("crm", "1"))
    request_id = erase(house, 1)
    page = page_of(house, ada, request_id)
    assert "State Not verified" in page
    assert "Nothing for you yet: crm will be read back again." in page
    assert "1 step is not verified, so the request stays open." in page


def test_a_read_back_that_was_given_up_is_shown_as_not_verifiable(
    house: House, visitor: Callable[[], Visitor], clock_at_noon: ManualClock
) -> None:
    house.script.silent.add(("crm", "1"))
    request_id = erase(house, 1)
    for _ in range(27):
        clock_at_noon.advance(timedelta(days=1))
        house.run()
    ada = seated(visitor(), house.ada)
    page = page_of(house, ada, request_id)
    assert "State Not verified" in page
    assert "crm Done Erased 1 of 8 – – Not verifiable" in page
    assert "Verified Blocked 1 confirmed, 2 on the vendor's word, 1 not verifiable" in page
    assert ada.refs("/console/verified?outcome=unverifiable") == [ref_of(house, request_id)]


def test_an_attested_system_is_counted_beside_the_confirmed_ones(house: House, ada: Visitor) -> None:
    house.script.answers["payment", "1"] = lambda: ResolverError("no", code="http_400")
    request_id = erase(house, 1)
    attest_by_hand(house, request_id, "payment")
    page = page_of(house, ada, request_id)
    assert "Verified In part 2 confirmed, 1 attested, 1 on the vendor's word" in page
    assert "payment Done Done by hand" in page
    assert "has succeeded (2 confirmed, 1 attested, 1 on the vendor's word)." in page
    assert "Attested gone" in words(ada.get("/console/verified").text)


def test_what_is_retained_is_named_beside_what_is_gone(house: House, ada: Visitor) -> None:
    page = page_of(house, ada, erase(house, 1))
    assert "nothing to be erased is left in 3 tables. Kept by law: 1 row in invoices." in page
    assert "Your database Done changed in one transaction; kept by law in invoices" in page


def test_an_expiry_that_nobody_looked_at_is_the_vendors_word(
    house: House, visitor: Callable[[], Visitor], clock_at_noon: ManualClock
) -> None:
    house.script.answers["payment", "1"] = lambda: Scheduled(NOON + timedelta(days=1))
    request_id = erase(house, 1)
    house.script.answers["payment", "1"] = AlreadyAbsent
    clock_at_noon.advance(timedelta(days=1))
    house.run()
    page = page_of(house, seated(visitor(), house.ada), request_id)
    assert "payment Done Expired, vendor's word" in page
    assert "payment reported the data as expired." in page
