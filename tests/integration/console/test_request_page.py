"""What happened to this person's request?"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import func, insert, select, text, update

from effaced.audit.tables import Note
from effaced.core import clock
from effaced.core.errors import ResolverError
from effaced.model import RequestStatus
from effaced.requests.status import RequestEvent, transition
from effaced.requests.tables import Request
from tests.browser.seed import DATAMAP, House, orders
from tests.integration.console.conftest import HTMX, NOON, Visitor, count_events, ref_of, seated, status_of

REASON = "Passport seen at the counter."


def show(visitor: Visitor, house: House, request_id: object) -> str:
    return visitor.get(f"/console/requests/{ref_of(house, request_id)}").text  # type: ignore[arg-type]


def words(page: str) -> str:
    """The page as it is read: tags gone, spaces single."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_before_approval_the_plan_says_what_would_happen(house: House, ada: Visitor) -> None:
    page = words(show(ada, house, house.ask(3)))
    assert "orders 4 Deleted" in page
    assert "invoices 1 Retained" in page
    assert "tax law, ten years, until billed_on + 10 years in 1 row: billed_on, customer_id" in page
    assert "customers 1 Anonymised" in page
    assert "Systems to be called crm files mailing payment" in page
    assert "This changes 5 rows in 2 tables at once and calls 4 external systems." in page


def test_looking_at_the_plan_changes_nothing(house: House, ada: Visitor) -> None:
    show(ada, house, house.ask(3))
    with house.runtime.db.read() as session:
        assert session.scalar(select(func.count()).where(orders.c.customer_id == 3)) == 4


def test_rows_that_are_kept_are_counted_where_only_some_of_them_change(house: House, ada: Visitor) -> None:
    with house.runtime.db.begin() as session:
        session.execute(text("ALTER TABLE invoices ADD COLUMN remark text"))
        session.execute(
            text("INSERT INTO invoices (id, customer_id, remark) VALUES (901, 3, 'hi'), (902, 3, NULL)")
        )
    told = DATAMAP.replace(
        "      id: not_personal\n      customer_id:",
        "      remark: delete\n      id: not_personal\n      customer_id:",
    )
    house.runtime.settings.datamap.write_text(told)
    house.forget_map()
    page = words(show(ada, house, house.ask(3)))
    assert "invoices 1 Anonymised" in page
    assert "in 3 rows: billed_on, customer_id" in page


def test_tables_with_nothing_of_the_person_are_only_named(house: House, ada: Visitor) -> None:
    with house.runtime.db.begin() as session:
        session.execute(text("DELETE FROM invoices WHERE customer_id = 3"))
    page = words(show(ada, house, house.ask(3)))
    assert "invoices 0" not in page
    assert "tax law" not in page
    assert "Nothing in invoices." in page


def test_very_many_rows_are_told_to_the_last_one(house: House, ada: Visitor) -> None:
    with house.runtime.db.begin() as session:
        session.execute(insert(orders), [{"customer_id": 3, "article": "x"} for _ in range(12_000)])
    page = words(show(ada, house, house.ask(3)))
    assert "orders 12,004 Deleted" in page
    assert "This changes 12,005 rows in 2 tables at once" in page


def test_a_map_that_no_longer_fits_is_reported_before_anybody_approves(house: House, ada: Visitor) -> None:
    request_id = house.ask(3)
    assert "does not fit the database" not in show(ada, house, request_id)
    with house.runtime.db.begin() as session:
        session.execute(text("CREATE TABLE wishes (id integer, customer_id integer)"))
        session.execute(text("ALTER TABLE orders ADD COLUMN engraving text"))
    page = words(show(ada, house, request_id))
    assert "This request can&#39;t be executed: the data map does not fit the database" in page.replace(
        "'", "&#39;"
    )
    assert "orders.engraving: the column is not declared" in page
    assert "wishes: the table is not declared" in page
    assert "This changes" not in page


def test_rows_are_shown_on_demand_and_masked(house: House, ada: Visitor) -> None:
    path = f"/console/requests/{ref_of(house, house.ask(3))}"
    assert "Show masked rows" in ada.get(path).text
    page = words(ada.get(f"{path}?rows=masked").text)
    with house.runtime.db.read() as session:
        name, email = session.execute(text("SELECT name, email FROM customers WHERE id = 3")).one()
    assert name not in page
    assert email not in page
    assert f"name {name[0]}••••" in page
    assert "and 1 more" in page  # of four orders, three


def test_what_was_read_by_another_map_is_not_approved(house: House, ada: Visitor) -> None:
    request_id = house.ask(3)
    path = f"/console/requests/{ref_of(house, request_id)}"
    seen = re.search(r'name="datamap" value="(\w+)"', ada.get(path).text)
    assert seen is not None
    house.runtime.settings.datamap.write_text(DATAMAP.replace("text: erased", "text: gone"))
    house.forget_map()
    answer = ada.post(f"{path}/approve", {"reason": REASON, "datamap": seen[1]})
    assert (answer.status_code, answer.location) == (303, path)
    assert status_of(house, request_id) is RequestStatus.REVIEW
    page = ada.get(path).text
    assert "The data map has changed. See what it would do now, and approve again." in page
    assert house.runtime.datamap.hash in page


def test_metadata_of_the_source_is_shown_until_the_request_is_closed(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    with house.runtime.db.begin() as session:
        session.get_one(Request, request_id).metadata_values = {"ticket": "T-4711"}
    page = show(ada, house, request_id)
    assert "<dt>ticket</dt><dd><code>T-4711</code></dd>" in page
    with house.runtime.db.begin() as session:
        request = session.get_one(Request, request_id)
        transition(session, request, RequestEvent.SUPERSEDED, by="system", closed_at=clock.now())
    assert "T-4711" not in show(ada, house, request_id)


def test_the_next_action_is_named(house: House, ada: Visitor) -> None:
    assert "An officer has to approve." in show(ada, house, house.ask(1))


def test_approving_executes_and_leads_back_to_the_page(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    path = f"/console/requests/{ref_of(house, request_id)}"
    answer = ada.post(f"{path}/approve", {"reason": REASON})
    assert (answer.status_code, answer.location) == (303, path)
    assert status_of(house, request_id) is RequestStatus.RUNNING
    page = ada.get(path).text
    assert "Approved and executed in your database." in page
    assert REASON in page


def test_approving_without_a_reason_changes_nothing_and_says_so(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    answer = ada.post(f"/console/requests/{ref_of(house, request_id)}/approve", {"reason": "  "})
    assert answer.status_code == 422
    assert "The reason is missing." in answer.text
    assert status_of(house, request_id) is RequestStatus.REVIEW
    assert count_events(house, "REQUEST_APPROVED") == 0


def test_what_was_typed_is_kept_when_it_is_refused(house: House, ada: Visitor) -> None:
    long = "because " * 300
    answer = ada.post(f"/console/requests/{ref_of(house, house.ask(1))}/approve", {"reason": long})
    assert answer.status_code == 422
    assert long in answer.text


def test_a_refused_approval_in_htmx_is_the_form_with_its_error(house: House, ada: Visitor) -> None:
    answer = ada.post(
        f"/console/requests/{ref_of(house, house.ask(1))}/approve", {"reason": ""}, headers=HTMX
    )
    assert answer.status_code == 422
    assert answer.text.strip().startswith('<section id="approve"')
    assert 'aria-invalid="true"' in answer.text


def test_an_approval_in_htmx_brings_the_request_anew_and_a_toast(house: House, ada: Visitor) -> None:
    answer = ada.post(
        f"/console/requests/{ref_of(house, house.ask(1))}/approve", {"reason": REASON}, headers=HTMX
    )
    assert answer.headers["HX-Retarget"] == "#request"
    assert answer.text.strip().startswith('<div id="request"')
    assert json.loads(answer.headers["HX-Trigger"])["toast"]["text"].startswith("Approved and executed")


def test_a_second_click_finds_the_request_approved_already(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    house.approve(request_id, by=house.ben)
    path = f"/console/requests/{ref_of(house, request_id)}"
    answer = ada.post(f"{path}/approve", {"reason": REASON})
    assert answer.location == path
    assert "it can be approved" in ada.get(path).text


def test_of_two_approvals_the_first_leaves_the_request_waiting(house: House, ada: Visitor) -> None:
    request_id = house.ask(1, key=house.two_eyes)
    path = f"/console/requests/{ref_of(house, request_id)}"
    ada.post(f"{path}/approve", {"reason": REASON})
    page = ada.get(path).text
    assert status_of(house, request_id) is RequestStatus.REVIEW
    assert "You have approved this request. The next approval has to come from another officer." in page
    assert f"{path}/approve" not in page


def test_nobody_is_offered_to_approve_what_they_entered(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    with house.runtime.db.begin() as session:
        session.execute(update(Request).where(Request.id == request_id).values(entered_by=house.ada.id))
    page = show(ada, house, request_id)
    assert "You entered this request, so another officer has to approve it." in page
    assert "/approve" not in page


def test_a_failure_of_the_own_database_is_told_and_not_hidden(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    with house.runtime.db.begin() as session:
        session.execute(update(Request).where(Request.id == request_id).values(subject_sealed=None))
    ref = ref_of(house, request_id)
    ada.post(f"/console/requests/{ref}/approve", {"reason": REASON})
    page = words(ada.get(f"/console/requests/{ref}").text)
    assert "your database could not be changed" in page
    assert "Your database Blocked failed; nothing was changed" in page


def test_the_tables_that_take_long_come_first(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    done = {"orders": [1, 4], "mail": [0, 9_000], "notes": [7, 7]}
    with house.runtime.db.begin() as session:
        values = {"status": RequestStatus.APPROVED, "batch_counts": done}
        session.execute(update(Request).where(Request.id == request_id).values(values))
    page = show(ada, house, request_id)
    assert re.findall(r'<progress [^>]*aria-label="(\w+)"', page) == ["mail", "notes", "orders"]


def test_the_work_on_very_many_rows_shows_how_far_it_is(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    assert "Very many rows" not in show(ada, house, request_id)

    def work_off(done: int) -> None:
        values = {"status": RequestStatus.APPROVED, "batch_counts": {"orders (detached)": [done, 5_000_000]}}
        with house.runtime.db.begin() as session:
            session.execute(update(Request).where(Request.id == request_id).values(values))

    work_off(120_000)
    page = show(ada, house, request_id)
    assert "120,000 of 5,000,000 rows done" in page
    assert '<progress class="full" max="5000000" value="120000"' in page
    assert "orders (detached)" in words(page)
    assert "Your database Under way being changed in batches" in words(page)
    [poll] = re.findall(r'hx-get="([^"]+)" hx-trigger="poll"', page)
    assert ada.get(html.unescape(poll), headers=HTMX).status_code == 204
    work_off(140_000)
    assert "140,000 of 5,000,000" in ada.get(html.unescape(poll), headers=HTMX).text
    with house.runtime.db.begin() as session:
        done = {"status": RequestStatus.RUNNING, "executed_at": NOON}
        session.execute(update(Request).where(Request.id == request_id).values(done))
    assert "Your database Done changed in batches" in words(show(ada, house, request_id))


def test_what_executing_would_do_goes_from_an_open_page_once_it_is_done(house: House, ada: Visitor) -> None:
    request_id = house.ask(3)
    page = show(ada, house, request_id)
    assert "What will be erased" in page
    [poll] = re.findall(r'hx-get="([^"]+)" hx-trigger="poll"', page)
    poll = html.unescape(poll)
    gone = '<div id="before" class="stack" hidden hx-swap-oob="true"></div>'
    assert gone not in ada.get(poll.replace("seen=", "seen=another"), headers=HTMX).text
    house.approve(request_id)
    assert gone in ada.get(poll, headers=HTMX).text


def test_somebody_with_very_many_rows_is_told_to_take_a_while(house: House, ada: Visitor) -> None:
    house.runtime.executor.batch_rows = 1
    request_id = house.ask(3)
    ada.post(f"/console/requests/{ref_of(house, request_id)}/approve", {"reason": REASON})
    page = words(show(ada, house, request_id))
    assert "Approved. There are very many rows: they are changed in batches next." in page
    assert status_of(house, request_id) is RequestStatus.APPROVED


def test_rows_of_others_that_let_go_are_told_in_the_plan(house: House, ada: Visitor) -> None:
    with house.runtime.db.begin() as session:
        session.execute(text("CREATE TABLE visits (id integer PRIMARY KEY, guest integer)"))
        session.execute(text("INSERT INTO visits VALUES (1, 3), (2, 3), (3, 4)"))
    mention = (
        "  visits:\n    mentions: {to: customers, on: {guest: id}, columns: {guest: {anonymise: null}}}\n"
    )
    tables = "    columns: {id: not_personal, guest: not_personal}\nrectify:"
    house.runtime.settings.datamap.write_text(DATAMAP.replace("rectify:", mention + tables))
    house.forget_map()
    page = words(show(ada, house, house.ask(3)))
    assert "visits 2 Detached somebody else&#39;s rows, which no longer name the person" in page.replace(
        "'", "&#39;"
    )
    assert "This changes 7 rows in 3 tables" in page


# --- afterwards ---


def test_afterwards_it_is_told_what_was_done_and_what_was_kept(house: House, ada: Visitor) -> None:
    request_id = house.ask(3)
    house.approve(request_id, reason=REASON)
    page = words(show(ada, house, request_id))
    assert "What was done to your database kept by law in invoices" in page
    assert "orders 4 Deleted" in page
    assert "tax law, ten years, until billed_on + 10 years in 1 row: billed_on, customer_id" in page


def test_afterwards_it_is_told_in_how_many_rows_something_was_kept(house: House, ada: Visitor) -> None:
    with house.runtime.db.begin() as session:
        session.execute(text("ALTER TABLE invoices ADD COLUMN remark text"))
    told = "      id: not_personal\n      customer_id:"
    house.runtime.settings.datamap.write_text(DATAMAP.replace(told, "      remark: delete\n" + told))
    house.forget_map()
    request_id = house.ask(3)
    house.approve(request_id, reason=REASON)
    page = words(show(ada, house, request_id))
    assert "kept by law in invoices" in page
    assert "invoices 0 nothing to change tax law, ten years" in page
    assert "in 1 row: billed_on, customer_id" in page


def test_the_story_is_told_in_order_and_in_plain_words(house: House, ada: Visitor) -> None:
    house.script.answers["crm", "1"] = lambda: ResolverError("no", code="http_400")
    request_id = house.ask(1, reason="Asked by letter.")
    with clock.pretend(NOON + timedelta(hours=1)):
        house.approve(request_id, reason=REASON)
    with clock.pretend(NOON + timedelta(hours=2)):
        house.run()
    page = words(show(ada, house, request_id))
    told = [
        "Erasure request received, due by 2 Apr 2026. Needs 1 approval.",
        "Asked by letter.",
        "Approved (1 of 1).",
        REASON,
        "Your database changed: 3 rows in 2 tables. Kept by law: 1 row in invoices. 4 external calls queued.",
        "Attempt 1 at crm failed: ResolverError",
        "crm was abandoned after 1 attempt (ResolverError, http_400).",
        "A step failed permanently: external call, ResolverError.",
    ]
    places = [page.find(sentence) for sentence in told]
    assert -1 not in places, told[places.index(-1)]
    assert places == sorted(places)
    assert "Verified: files no longer holds the data." in page


def test_an_erased_note_leaves_a_gap_that_is_named(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    house.approve(request_id, reason=REASON)
    with house.runtime.db.begin() as session:
        session.execute(update(Note).values(text_sealed=None))
    page = show(ada, house, request_id)
    assert REASON not in page
    assert "(this note was erased)" in page


def test_the_calls_show_attempts_errors_and_read_backs(house: House, ada: Visitor) -> None:
    house.script.answers["crm", "1"] = lambda: ResolverError("no", code="http_400")
    house.script.still_there.add(("files", "1"))
    request_id = house.ask(1)
    house.approve(request_id)
    house.run()
    page = words(show(ada, house, request_id))
    assert "crm Abandoned – 1 of 8 – ResolverError –" in page
    assert "files Done Erased 1 of 8 – – Still present" in page
    assert "External systems Blocked 3 of 4 done, 1 abandoned" in page


def test_a_request_that_can_still_move_polls_and_a_completed_one_does_not(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    house.approve(request_id)
    assert "data-poll" in show(ada, house, request_id)
    house.run()
    assert status_of(house, request_id) is RequestStatus.COMPLETED
    assert "data-poll" not in show(ada, house, request_id)


def test_a_poll_is_answered_with_nothing_until_something_has_changed(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    house.approve(request_id)
    poll = re.findall(r'hx-get="([^"]+)" hx-trigger="poll"', show(ada, house, request_id))[0]
    assert ada.get(poll, headers=HTMX).status_code == 204
    house.run()
    answer = ada.get(poll, headers=HTMX)
    assert answer.status_code == 200
    assert answer.text.lstrip().startswith('<div id="live"')
    assert '<div id="rest" class="stack" hx-swap-oob="true">' in answer.text


def test_a_ref_is_found_in_small_letters_too(house: House, ada: Visitor) -> None:
    assert ada.get(f"/console/requests/{ref_of(house, house.ask(1)).lower()}").status_code == 200


def test_nothing_personal_is_on_the_page(house: House, visitor: Callable[[], Visitor]) -> None:
    page = show(seated(visitor(), house.ben), house, house.ask(7))
    assert "Person 7" not in page
    assert "p7@example.com" not in page
