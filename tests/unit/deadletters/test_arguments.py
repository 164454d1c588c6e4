"""What a dead letter may be given: shapes that can hold nobody's name, and facts by listed keys only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from effaced.core.errors import Refused
from effaced.deadletters.arguments import (
    ALLOWED,
    InvalidArgument,
    actor_id,
    as_uuid,
    code,
    dead_letter_domain,
    dead_letter_status,
    facts,
    linked_ids,
    moment,
    no_message,
    number,
)
from effaced.model import DeadLetterDomain, DeadLetterStatus

D = DeadLetterDomain
ID = UUID("0190f1d2-0000-7000-8000-000000000000")
PERSONAL = "anna@people.example"


def problems(call: Any, *args: Any) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as refused:
        call(*args)
    assert PERSONAL not in str(refused.value)
    return [(each.where, each.message) for each in refused.value.problems]


def test_a_refusal_is_a_value_error_with_the_name_of_the_argument() -> None:
    with pytest.raises(ValueError, match=r"^The limit must be a number from 0 to 2147483647\.") as refused:
        number("limit", -1)
    assert isinstance(refused.value, InvalidArgument)


@pytest.mark.parametrize(
    "word", ["TimeoutError", "a", "_x", "http_503", "requests.Timeout", "a-b:c", "x" * 9]
)
def test_a_code_is_a_word_such_as_a_class_name(word: str) -> None:
    assert code("error_code", word, 20) == word


@pytest.mark.parametrize("word", [PERSONAL, "could not find Anna", "5xx", "ü", "a\n", "x" * 21, " "])
def test_a_code_has_no_room_for_a_message(word: str) -> None:
    expected = "must be a word of at most 20 letters, digits and _ . : -"
    assert problems(code, "error_code", word, 20) == [("error_code", expected)]


def test_a_code_may_be_left_out_where_it_is_not_required() -> None:
    assert code("error_code", "", 20) == ""
    with pytest.raises(InvalidArgument, match="failure_type"):
        code("failure_type", "", 20, required=True)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 11])
def test_a_number_is_a_whole_one_within_its_bounds(value: Any) -> None:
    assert problems(number, "limit", value, 10) == [("limit", "must be a number from 0 to 10")]
    assert (number("limit", 0, 10), number("limit", 10, 10)) == (0, 10)


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 3, 2, 9),  # noqa: DTZ001 - that is what is refused
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ],
)
def test_a_moment_has_a_zone_and_can_be_converted_to_any_other(value: datetime) -> None:
    expected = "must be a moment with a time zone, from the year 2 to 9998"
    assert problems(moment, "before_date", value) == [("before_date", expected)]


def test_words_are_those_of_the_model_and_refusals_list_them() -> None:
    assert dead_letter_status("pending") is DeadLetterStatus.PENDING
    assert dead_letter_domain("message") is DeadLetterDomain.MESSAGE
    [(where, said)] = problems(dead_letter_status, PERSONAL)
    assert (where, said) == ("status", f"must be one of {', '.join(DeadLetterStatus)}")


def test_a_message_is_refused_and_an_empty_one_is_none() -> None:
    no_message("error_message", "")
    [(where, said)] = problems(no_message, "error_message", PERSONAL)
    assert (where, said.startswith("is not kept")) == ("error_message", True)


@pytest.mark.parametrize(("given", "kept"), [(None, None), (7, "7"), ("officer:1-a_b", "officer:1-a_b")])
def test_an_actor_is_an_id(given: int | str | None, kept: str | None) -> None:
    assert actor_id("resolved_by_id", given) == kept


@pytest.mark.parametrize("given", ["", "Anna Berg", PERSONAL, "x" * 81])
def test_a_name_is_no_actor(given: str) -> None:
    expected = "must be an id of at most 80 letters, digits and _ : -"
    assert problems(actor_id, "resolved_by_id", given) == [("resolved_by_id", expected)]


@pytest.mark.parametrize(("text", "found"), [(str(ID), ID), (ID, ID), ("", None), ("7", None), (None, None)])
def test_an_id_that_is_none_finds_nothing(text: object, found: UUID | None) -> None:
    assert as_uuid(text) == found


class TestFacts:
    def test_are_kept_under_their_keys_and_ids_as_texts(self) -> None:
        assert facts("metadata", {"same_error": 2, "redrive_id": ID}) == {
            "same_error": 2,
            "redrive_id": str(ID),
        }

    @pytest.mark.parametrize("argument", ALLOWED)
    def test_that_are_left_out_are_none(self, argument: str) -> None:
        assert facts(argument, None) == facts(argument, {}) == {}

    @pytest.mark.parametrize("argument", ALLOWED)
    def test_under_a_key_that_is_not_listed_are_refused_with_the_keys_that_are(self, argument: str) -> None:
        expected = f"is not kept; only {', '.join(ALLOWED[argument])} are"
        assert problems(facts, argument, {"email": PERSONAL}) == [(f"{argument}.email", expected)]

    @pytest.mark.parametrize("key", [PERSONAL, "a b", "1st", "x" * 65, 7])
    def test_under_a_key_that_may_be_personal_are_refused_without_repeating_it(self, key: Any) -> None:
        [(where, _)] = problems(facts, "metadata", {key: 1})
        assert where == "metadata.(unprintable)"

    @pytest.mark.parametrize(
        ("argument", "key", "value"),
        [
            ("snapshot_data", "attempts", PERSONAL),
            ("snapshot_data", "attempts", -1),
            ("snapshot_data", "attempts", True),
            ("snapshot_data", "attempts", 2**31),
            ("snapshot_data", "operation", PERSONAL),
            ("snapshot_data", "entry_status", ["pending"]),
            ("response_data", "status_code", 99),
            ("response_data", "status_code", 600),
            ("entity_refs", "entry_id", PERSONAL),
            ("entity_refs", "entry_id", 7),
        ],
    )
    def test_of_the_wrong_kind_are_refused_without_their_value(
        self, argument: str, key: str, value: Any
    ) -> None:
        expected = [(f"{argument}.{key}", "has a value of the wrong kind")]
        assert problems(facts, argument, {key: value}) == expected

    def test_are_refused_all_together(self) -> None:
        found = problems(facts, "error_details", {"attempts": "x", "status_code": 200, "body": PERSONAL})
        assert [where for where, _ in found] == ["error_details.attempts", "error_details.body"]


class TestLinks:
    @pytest.mark.parametrize(
        ("domain", "kind"), [(D.EXTERNAL_CALL, "entry"), (D.VERIFICATION, "entry"), (D.MESSAGE, "delivery")]
    )
    def test_to_the_work_and_its_request(self, domain: DeadLetterDomain, kind: str) -> None:
        assert linked_ids(domain, kind, str(ID), {"request_id": str(ID)}) == (ID, ID)
        assert linked_ids(domain, None, None, {f"{kind}_id": ID}) == (ID, None)

    def test_to_a_request_alone(self) -> None:
        assert linked_ids(D.LOCAL_EXECUTION, "request", str(ID), None) == (None, ID)

    @pytest.mark.parametrize("domain", list(D))
    def test_to_nothing(self, domain: DeadLetterDomain) -> None:
        assert linked_ids(domain, None, None, None) == (None, None)

    @pytest.mark.parametrize(
        ("kind", "given", "problem"),
        [
            ("person", str(ID), ("entity_type", "must be entry, delivery or request")),
            (None, str(ID), ("entity_type", "must be entry, delivery or request")),
            ("entry", None, ("entity_id", "must be the id of the entry")),
            ("request", PERSONAL, ("entity_id", "must be the id of the request")),
            (
                "delivery",
                str(ID),
                ("entity_type", "can link external_call to entry_id and request_id only"),
            ),
        ],
    )
    def test_that_lead_nowhere_are_refused(
        self, kind: str | None, given: str | None, problem: tuple[str, str]
    ) -> None:
        assert problems(linked_ids, D.EXTERNAL_CALL, kind, given, None) == [problem]

    def test_to_the_work_of_another_domain_are_refused(self) -> None:
        expected = "can link local_execution to request_id only"
        assert problems(linked_ids, D.LOCAL_EXECUTION, None, None, {"entry_id": ID}) == [
            ("entity_refs", expected)
        ]
