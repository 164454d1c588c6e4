"""The fake vendors: what they answer when they are well, and what each fault makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import loopback
import pytest
from waiting import PATIENCE, eventually

from effaced.core import clock
from effaced.core.errors import Refused, Unavailable
from effaced.demo.company import demo_people, vendor_records
from effaced.demo.vendors import CANARIES, DEMO_TOKEN, VENDORS, FaultKind, Vendors

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
def vendors():
    with Vendors() as running:
        running.seed("payment", {"cus_1": {"name": "Anna"}, "cus_2": {"name": "Bob"}})
        running.seed("crm", {"con_1": {"name": "Anna"}})
        running.seed("mailing", {"anna@people.example": {"name": "Anna"}})
        running.seed("files", {"customers/1/a.pdf": {}, "customers/1/b.pdf": {}, "customers/10/c.pdf": {}})
        yield running


@pytest.fixture
def web(vendors):
    headers = {"Authorization": f"Bearer {vendors.token}"}
    with loopback.client(base_url=vendors.base_url, headers=headers, trust_env=False) as client:
        yield client


def delete(web, target: str, key: str | None = None) -> httpx.Response:
    return web.delete(target, headers={"Idempotency-Key": key} if key else {})


ANNA = {
    "payment": "/payment/v1/customers/cus_1",
    "crm": "/crm/contacts/con_1",
    "mailing": "/mailing/subscribers/anna%40people.example",
    "files": "/files/objects?prefix=customers/1/",
}


# --- well --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["payment", "crm", "files"])
def test_a_delete_deletes_and_a_second_one_finds_nothing(web, name):
    assert [
        web.get(ANNA[name]).status_code,
        delete(web, ANNA[name]).status_code,
        delete(web, ANNA[name]).status_code,
        web.get(ANNA[name]).status_code,
    ] == [200, 204, 404, 404]


def test_others_keep_their_records(vendors, web):
    delete(web, ANNA["payment"])
    delete(web, ANNA["files"])
    assert list(vendors.records("payment")) == ["cus_2"]
    assert list(vendors.records("files")) == ["customers/10/c.pdf"]


@pytest.mark.parametrize(
    ("name", "values"), [("payment", {"name": "Eva"}), ("crm", {"contact": {"phone": "1"}})]
)
def test_a_patch_corrects_and_keeps_the_rest(vendors, web, name, values):
    before = next(iter(vendors.records(name).values()))
    assert web.patch(ANNA[name], json=values).status_code == 200
    assert before | values == next(iter(vendors.records(name).values()))


def test_a_patch_below_keeps_what_stands_beside_it(vendors, web):
    web.patch(ANNA["crm"], json={"contact": {"email": "a@new.example"}})
    web.patch(ANNA["crm"], json={"contact": {"phone": "1"}})
    assert vendors.records("crm")["con_1"]["contact"] == {"email": "a@new.example", "phone": "1"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"{", b'{"shoe_size": 44}'])
def test_a_patch_of_something_else_is_refused_and_changes_nothing(vendors, web, body):
    assert web.patch(ANNA["payment"], content=body).status_code == 422
    assert vendors.records("payment")["cus_1"] == {"name": "Anna"}


def test_the_same_patch_again_is_replayed_and_another_one_refused(vendors, web):
    key = {"Idempotency-Key": "k"}
    answers = [web.patch(ANNA["payment"], json={"name": name}, headers=key) for name in ("Eva", "Eva", "Ida")]
    assert [answer.status_code for answer in answers] == [200, 200, 422]
    assert vendors.records("payment")["cus_1"]["name"] == "Eva"


@pytest.mark.parametrize("name", ["mailing", "files"])
def test_some_vendors_can_not_correct(web, name):
    assert web.patch(ANNA[name], json={"name": "Eva"}).status_code == 405


def test_nobody_is_made_up_by_a_patch(web):
    assert web.patch("/payment/v1/customers/cus_9", json={"name": "Eva"}).status_code == 404


def test_the_mailing_list_forgets_only_after_a_while(vendors, web):
    with clock.pretend(NOON) as now:
        answer = delete(web, ANNA["mailing"])
        assert (202, NOON + vendors.expire_after) == (
            answer.status_code,
            datetime.fromisoformat(answer.json()["expires_at"]),
        )
        now.advance(vendors.expire_after - timedelta(seconds=1))
        assert web.get(ANNA["mailing"]).status_code == 200
        now.advance(timedelta(seconds=1))
        assert (delete(web, ANNA["mailing"]).status_code, vendors.records("mailing")) == (404, {})


def test_asking_the_mailing_list_again_does_not_postpone_it(web):
    with clock.pretend(NOON) as now:
        first = delete(web, ANNA["mailing"]).json()
        now.advance(timedelta(seconds=30))
        assert first == delete(web, ANNA["mailing"]).json()


def test_an_idempotency_key_replays_its_answer(vendors, web):
    key = str(uuid4())
    assert [
        delete(web, ANNA["payment"], key).status_code,
        delete(web, ANNA["payment"], key).status_code,
        delete(web, ANNA["payment"], str(uuid4())).status_code,
    ] == [204, 204, 404]


def test_an_idempotency_key_belongs_to_one_call(vendors, web):
    key = str(uuid4())
    delete(web, ANNA["payment"], key)
    assert delete(web, "/payment/v1/customers/cus_2", key).status_code == 422
    assert "cus_2" in vendors.records("payment")


@pytest.mark.parametrize("headers", [{"Authorization": ""}, {"Authorization": "Bearer wrong"}])
def test_a_wrong_token_is_refused_and_changes_nothing(vendors, web, headers):
    assert web.delete(ANNA["payment"], headers=headers).status_code == 401
    assert "cus_1" in vendors.records("payment")


@pytest.mark.parametrize("target", ["/files/objects", "/files/objects?prefix=", "/payment/v1/customers/"])
def test_an_empty_reference_does_not_mean_everybody(vendors, web, target):
    assert delete(web, target).status_code == 400
    assert (len(vendors.records("payment")), len(vendors.records("files"))) == (2, 3)


@pytest.mark.parametrize("target", ["/payment/customers/cus_1", "/payment", "/nobody/x", "/crm/contacts/a/b"])
def test_an_unknown_path_is_404(web, target):
    assert web.get(target).status_code == 404


def test_every_call_is_remembered(vendors, web):
    delete(web, ANNA["crm"], "key-1")
    (call,) = vendors.calls
    assert ("crm", "DELETE", ANNA["crm"], 204, "key-1") == (
        call.vendor,
        call.method,
        call.target,
        call.status,
        call.idempotency_key,
    )


def test_the_canary_is_found_but_is_nobodys_record(vendors, web):
    assert web.get(f"/payment/v1/customers/{CANARIES['payment']}").status_code == 200
    assert CANARIES["payment"] not in vendors.records("payment")


def test_records_in_a_file_outlive_the_process(tmp_path):
    with Vendors(state=tmp_path / "vendors.db") as first:
        first.seed("crm", {"con_1": {"name": "Anna"}})
        assert first.store.is_new
    with Vendors(state=tmp_path / "vendors.db") as second:
        assert second.records("crm") == {"con_1": {"name": "Anna"}}
        assert not second.store.is_new


def test_a_port_in_use_is_named(vendors):
    other = Vendors(port=vendors.port)
    try:
        with pytest.raises(Unavailable, match=f"Port {vendors.port}"):
            other.start()
    finally:
        other.stop()


# --- faults ------------------------------------------------------------------------------------------


def test_down_closes_the_connection(vendors, web):
    vendors.fault("crm", "down")
    with pytest.raises(httpx.RemoteProtocolError):
        web.get(ANNA["crm"])
    assert vendors.calls[-1].status is None


@pytest.mark.parametrize(
    ("kind", "options", "status"),
    [
        ("down", {"how": "503"}, 503),
        ("unauthorised", {}, 401),
        ("unauthorised", {"status": 403}, 403),
        ("rejects", {}, 400),
    ],
)
def test_a_fault_answers_and_changes_nothing(vendors, web, kind, options, status):
    vendors.fault("crm", kind, **options)
    assert status == delete(web, ANNA["crm"]).status_code
    assert list(vendors.records("crm")) == ["con_1"]


def test_slow_answers_late_but_rightly(vendors, web):
    vendors.fault("crm", "slow", seconds=0.3)
    with pytest.raises(httpx.ReadTimeout):
        web.get(ANNA["crm"], timeout=0.05)
    assert web.get(ANNA["crm"]).status_code == 200


def test_throttled_says_when_to_come_back_in_seconds(vendors, web):
    vendors.fault("crm", "throttled", retry_after=7)
    answer = web.get(ANNA["crm"])
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")


def test_throttled_says_when_to_come_back_as_a_date(vendors, web):
    vendors.fault("crm", "throttled", retry_after=60, as_date=True)
    with clock.pretend(NOON):
        assert web.get(ANNA["crm"]).headers["Retry-After"] == "Mon, 02 Mar 2026 12:01:00 GMT"


def test_flaky_fails_every_nth_call(vendors, web):
    vendors.fault("crm", "flaky", every=3)
    assert [web.get(ANNA["crm"]).status_code for _ in range(6)] == [200, 200, 500, 200, 200, 500]


def test_lies_says_deleted_and_keeps_the_record(vendors, web):
    vendors.fault("crm", "lies")
    assert (delete(web, ANNA["crm"]).status_code, web.get(ANNA["crm"]).status_code) == (204, 200)


def test_a_lie_ends_with_the_fault_even_for_the_same_key(vendors, web):
    vendors.fault("crm", "lies")
    delete(web, ANNA["crm"], "key-1")
    vendors.heal("crm")
    assert delete(web, ANNA["crm"], "key-1").status_code == 204
    assert vendors.records("crm") == {}


def test_expires_only_makes_any_vendor_wait(vendors, web):
    vendors.fault("crm", "expires_only", seconds=30)
    with clock.pretend(NOON) as now:
        assert delete(web, ANNA["crm"], "key-1").status_code == 202
        now.advance(timedelta(seconds=30))
        assert delete(web, ANNA["crm"], "key-1").status_code == 404


def test_a_fault_is_one_vendors_own(vendors, web):
    vendors.fault("crm", "rejects")
    assert (web.get(ANNA["crm"]).status_code, web.get(ANNA["payment"]).status_code) == (400, 200)


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("nobody", "down", {}),
        ("crm", "sulks", {}),
        ("crm", "slow", {"minutes": 1}),
        ("crm", "slow", {"seconds": "long"}),
        ("crm", "slow", {"seconds": float("nan")}),
        ("crm", "flaky", {"every": 0}),
        ("crm", "down", {"how": "loudly"}),
    ],
)
def test_an_unknown_fault_is_refused_and_none_is_switched_on(vendors, name, kind, options):
    with pytest.raises(Refused):
        vendors.fault(name, kind, **options)
    assert vendors.faults == {}


def test_a_fault_with_a_time_ends_by_itself(vendors, web):
    web.post("/_faults", json={"vendor": "crm", "kind": "down", "how": "503", "for_seconds": 0.3})
    assert web.get(ANNA["crm"]).status_code == 503
    eventually(lambda: web.get(ANNA["crm"]).status_code == 200, "the vendor to work again")


@pytest.mark.parametrize("seconds", ["soon", 0, -1, float("inf")])
def test_a_time_that_is_none_is_refused_and_the_fault_that_was_on_stays(vendors, seconds):
    vendors.fault("crm", "rejects")
    with pytest.raises(Refused, match="for_seconds"):
        vendors.fault("crm", "down", for_seconds=seconds)
    assert vendors.fault_of("crm").kind is FaultKind.REJECTS


def test_each_vendor_answers_on_a_port_of_its_own_and_for_itself_alone(vendors):
    headers = {"Authorization": f"Bearer {vendors.token}"}
    own = vendors.url("crm")
    assert len({vendors.port, *vendors.own_ports.values()}) == len(VENDORS) + 1
    assert loopback.get(f"{own}/contacts/con_1", headers=headers).status_code == 200
    elsewhere = own.removesuffix("/crm")
    assert loopback.get(f"{elsewhere}/payment/v1/customers/cus_1", headers=headers).status_code == 404
    assert loopback.get(f"{elsewhere}/", headers=headers).status_code == 404


# --- the page ----------------------------------------------------------------------------------------


def test_the_page_has_a_form_for_every_fault_of_every_vendor_and_for_a_drill(web):
    page = web.get("/").text
    assert len(VENDORS) * (len(FaultKind) + 2) == page.count('<form method="post" action="/_faults">')


def test_the_page_shows_calls_as_text(web):
    web.get("/crm/contacts/<script>")
    assert "<script>" not in web.get("/").text


def test_a_form_switches_a_fault_and_leads_back_to_the_page(vendors, web):
    answer = web.post("/_faults", data={"vendor": "crm", "kind": "slow", "seconds": "1.5"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert (vendors.faults["crm"].kind, vendors.faults["crm"].number("seconds")) == (FaultKind.SLOW, 1.5)


def test_json_switches_faults_on_and_off(vendors, web):
    on = web.post("/_faults", json={"vendor": "crm", "kind": "flaky", "every": 2})
    off = web.post("/_faults", json={"vendor": "crm", "kind": "none"})
    assert (on.json()["fault"], off.json()["fault"]) == ("flaky every=2", "none")
    assert vendors.faults == {}


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"vendor": "crm"}', b'{"vendor": "x", "kind": "down"}'])
def test_a_wrong_change_of_faults_is_refused(vendors, web, body):
    answer = web.post("/_faults", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, vendors.faults) == (422, {})


def test_another_sites_form_is_refused(vendors, web):
    headers = {"Origin": "https://evil.example"}
    answer = web.post("/_faults", data={"vendor": "crm", "kind": "down"}, headers=headers)
    assert (answer.status_code, vendors.faults) == (403, {})


# --- the process -------------------------------------------------------------------------------------


def test_the_process_serves_the_company_and_ends_cleanly_on_sigterm(tmp_path):
    command = [sys.executable, "-m", "effaced.demo.vendors", "--port", "0", "--people", "5"]
    environ = {name: value for name, value in os.environ.items() if name != "EFFACED_DEMO_TOKEN"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            known = next(iter(vendor_records(demo_people(5))["payment"]))
            answer = loopback.get(
                f"{url}/payment/v1/customers/{known}",
                headers={"Authorization": f"Bearer {DEMO_TOKEN}"},
                trust_env=False,
            )
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=PATIENCE)
    assert (answer.status_code, code) == (200, 0)
