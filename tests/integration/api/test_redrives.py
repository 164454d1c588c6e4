"""Redrives over the API: a set is retried, polled and cancelled."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from api_desk import LETTERS, REDRIVES, Desk, answer, codes

from effaced.model import DeadLetterStatus, OutboxOperation

from .conftest import Api


class TestRedrive:
    def test_of_a_set_is_202_and_can_be_polled_to_its_end(self, desk: Desk) -> None:
        ids = [desk.letter() for _ in range(3)]
        body = {"filter": {"resolver": "crm"}, "reason": "back", "per_second": None}
        started = desk.send(REDRIVES, body)
        found = answer(started, 202)
        assert (found["status"], found["total"], found["done"]) == ("running", 3, 0)
        path = started.headers["Location"]
        desk.api.runtime.advance_redrives()
        found = answer(desk.get(path))
        assert (found["status"], found["retried"], found["skipped"]) == ("finished", 3, {})
        page = answer(desk.get(f"{path}/results?limit=2"))
        rest = answer(desk.get(f"{path}/results?after={page['next']}"))
        results = [*page["data"], *rest["data"]]
        assert {each["dead_letter_id"] for each in results} == {str(each) for each in ids}
        assert {(each["retried"], each["code"], each["message"]) for each in results} == {(True, None, None)}
        (listed,) = answer(desk.get(REDRIVES))["data"]
        assert listed == {**found, "skipped": None}

    def test_says_why_one_was_left_alone(self, desk: Desk) -> None:
        desk.letter()
        correction = desk.letter(operation=OutboxOperation.RECTIFY)
        path = desk.send(REDRIVES, {"filter": {}, "reason": "back"}).headers["Location"]
        desk.api.runtime.advance_redrives()
        found = answer(desk.get(path))
        assert (found["done"], found["retried"], found["skipped"]) == (2, 1, {"reissue": 1})
        (left,) = [each for each in answer(desk.get(f"{path}/results"))["data"] if not each["retried"]]
        assert (left["dead_letter_id"], left["code"]) == (str(correction), "reissue")
        assert "send the correction again" in left["message"]

    def test_shows_the_filter_by_the_names_that_it_was_sent_with(self, desk: Desk) -> None:
        letter_id = str(desk.letter())
        request_id = answer(desk.get(f"{LETTERS}/{letter_id}"))["request_id"]
        sent = {
            "status": ["pending"],
            "domain": "external_call",
            "resolver": "crm",
            "error": "Timeout",
            "code": "attempts_exhausted",
            "request_id": request_id,
            "unassigned": True,
        }
        found = answer(desk.send(REDRIVES, {"filter": sent, "reason": "back"}), 202)
        assert found["filter"] == {"assigned_to": None, "late": False, "expired": False, **sent}

    def test_takes_open_ones_only_whatever_the_filter_says(self, desk: Desk) -> None:
        letter_id = desk.letter()
        desk.letter(status=DeadLetterStatus.RESOLVED)
        started = desk.send(REDRIVES, {"filter": {"status": ["all"]}, "reason": "back"})
        assert answer(started, 202)["total"] == 1
        desk.api.runtime.advance_redrives()
        (result,) = answer(desk.get(f"{started.headers['Location']}/results"))["data"]
        assert result["dead_letter_id"] == str(letter_id)

    def test_with_force_takes_those_whose_retries_are_used_up(self, desk: Desk) -> None:
        letter_id = desk.letter(status=DeadLetterStatus.REQUIRES_REVIEW)
        body = {"filter": {}, "reason": "mended", "force": True}
        assert answer(desk.send(REDRIVES, body), 202)["force"] is True
        desk.api.runtime.advance_redrives()
        assert desk.status(letter_id) == "replaying"

    def test_is_listed_newest_first_by_pages(self, desk: Desk) -> None:
        desk.letter()
        body = {"filter": {}, "reason": "back"}
        ids = [answer(desk.send(REDRIVES, body), 202)["id"] for _ in range(3)]
        page = answer(desk.get(f"{REDRIVES}?limit=2"))
        rest = answer(desk.get(f"{REDRIVES}?after={page['next']}"))
        assert [each["id"] for each in [*page["data"], *rest["data"]]] == ids[::-1]
        assert codes(desk.get(f"{REDRIVES}?after=x"))[0] == 422

    def test_can_be_cancelled_once(self, desk: Desk) -> None:
        letter_id = desk.letter()
        body = {"filter": {}, "reason": "back"}
        path = desk.send(REDRIVES, body).headers["Location"]
        found = answer(desk.send(f"{path}/cancel"))
        assert (found["status"], found["ended_by"]) == ("cancelled", desk.actor)
        desk.api.runtime.advance_redrives()
        assert desk.status(letter_id) == "pending"
        assert codes(desk.send(f"{path}/cancel")) == (409, {"status": "ended"})

    def test_sent_by_many_at_once_under_one_idempotency_key_is_one(self, desk: Desk) -> None:
        desk.letter()
        body, found = {"filter": {}, "reason": "back"}, list[tuple[int, str]]()

        def send() -> None:
            got = desk.send(REDRIVES, body, idempotency_key="one")
            found.append((got.status_code, got.headers["Location"]))

        threads = [threading.Thread(target=send) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert set(found) == {(202, found[0][1])}
        assert len(answer(desk.get(REDRIVES))["data"]) == 1

    @pytest.mark.parametrize(
        ("body", "fields"),
        [
            ({}, ["filter", "reason"]),
            ({"filter": {"resolvr": "x"}, "reason": "x"}, ["filter.resolvr"]),
            ({"filter": {"domain": "x"}, "reason": "x"}, ["filter.domain"]),
            ({"filter": {"status": ["done"]}, "reason": "x"}, ["filter.status"]),
            ({"filter": {"resolver": "nobody"}, "reason": "x"}, ["filter"]),
            ({"filter": {}, "reason": "x", "per_second": 0}, ["per_second"]),
            ({"filter": {}, "reason": "x", "per_second": 1e400}, ["per_second"]),
            ({"filter": {"status": "pending"}, "reason": "x"}, ["filter.status"]),
            ({"filter": {"late": 1}, "reason": "x"}, ["filter.late"]),
            ({"filter": {"request_id": "x"}, "reason": "x"}, ["filter.request_id"]),
            ({"filter": {"resolver": "a\0b"}, "reason": "x"}, ["filter.resolver"]),
            ({"filter": {}, "reason": " "}, ["reason"]),
        ],
    )
    def test_wrong_fields_are_named_and_nothing_is_started(
        self, lite: Desk, body: Any, fields: list[str]
    ) -> None:
        lite.letter()
        status, slug, found = Api.problem(lite.send(REDRIVES, body))
        assert (status, slug, list(found)) == (422, "refused", fields)
        assert answer(lite.get(REDRIVES))["data"] == []
