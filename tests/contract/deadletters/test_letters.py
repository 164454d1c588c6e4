"""Making, changing and finding letters: statements D1 to D6 and D13."""

from __future__ import annotations

import inspect
from datetime import timedelta
from uuid import UUID

import pytest
from saga_cast import KEYRING

from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import Conflict, Refused
from effaced.deadletters.interface import FailedOperationRepository
from effaced.deadletters.memory import InMemoryFailedOperationRepository
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.model import OutboxStatus, new_id

from .conftest import START, Store

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NO_IDS = ["", "7", "no id", "01890000-0000-7000-8000-00000000000x", str(new_id()), "a" * 4000, "\0"]


class TestD1Create:
    def test_with_domain_and_failure_type_only(self, store: Store) -> None:
        letter = store.letters.create("external_call", "Timeout")
        assert (letter.status, letter.retry_count, letter.max_retries) == ("pending", 0, 2)
        assert isinstance(letter.id, str)
        assert letter == store.letters.get_by_id(letter.id)

    def test_unknown_and_malformed_ids_find_nothing(self, store: Store) -> None:
        letters = store.letters
        for letter_id in NO_IDS:
            assert letters.get_by_id(letter_id) is None
            assert letters.try_acquire_for_replay(letter_id, 2) is None
            assert letters.try_acquire_for_replay(letter_id, 2, force=True) is None
            assert not letters.increment_retry_count(letter_id)
            assert not letters.mark_as_resolved(letter_id, "by_hand")
            assert not letters.complete_replay(letter_id, True, acquired=1)
            assert not letters.delete(letter_id)
            assert not letters.update_compressed_status(letter_id, "stale")
        assert letters.purge_archived(ids=NO_IDS) == 0
        assert letters.bulk_update_status(NO_IDS, "rejected") == 0

    def test_keeps_everything_that_is_allowed(self, store: Store) -> None:
        entry_id, request_id = str(new_id()), str(new_id())
        letter = store.letters.create(
            "external_call",
            "HTTPStatusError",
            error_code="http_500",
            entity_type="entry",
            entity_id=entry_id,
            entity_refs={"request_id": request_id},
            snapshot_data={"attempts": 8, "operation": "erase", "entry_status": "abandoned"},
            request_data={"operation": "erase", "attempt": 8},
            response_data={"status_code": 500, "latency_ms": 12},
            metadata={"force_redrive_count": 1},
            retry_count=1,
            max_retries=5,
            next_action_hint="call_them",
            recommended_action="escalate",
            expires_at=START + DAY,
        )
        found = store.get(letter.id)
        assert found == letter
        assert (found.entity_type, found.entity_id) == ("entry", entry_id)
        assert found.entity_refs == {"entry_id": entry_id, "request_id": request_id}
        assert found.snapshot_data == {"attempts": 8, "operation": "erase", "entry_status": "abandoned"}
        assert found.request_data == {"operation": "erase", "attempt": 8}
        assert found.response_data == {"status_code": 500, "latency_ms": 12}
        assert (found.metadata, found.max_retries) == ({"force_redrive_count": 1}, 5)
        assert (found.next_action_hint, found.recommended_action) == ("call_them", "escalate")
        assert found.expires_at == START + DAY

    def test_the_person_is_kept_as_a_keyed_hash(self, store: Store) -> None:
        letter = store.letters.create("external_call", "Timeout", user_id=4711471147114711)
        key = KEYRING.subject_key("4711471147114711")
        assert (letter.subject_key_id, letter.subject_hmac) == (key.key_id, key.hmac)
        assert "4711471147114711" not in repr(letter)

    def test_a_second_letter_for_the_same_entry_is_refused(self, store: Store) -> None:
        entry_id = str(store.entry(OutboxStatus.ABANDONED))
        store.create(entity_type="entry", entity_id=entry_id)
        with pytest.raises(Conflict):
            store.create(entity_type="entry", entity_id=entry_id)
        store.create(domain="verification", entity_type="entry", entity_id=entry_id)

    @pytest.mark.parametrize("field", ["domain", "failure_type", "error_code", "recommended_action"])
    def test_words_that_are_no_words_are_refused_by_the_name_of_the_field(
        self, store: Store, field: str
    ) -> None:
        given = {"domain": "external_call", "failure_type": "Timeout", field: "anna@people.example said no"}
        with pytest.raises(Refused) as refused:
            store.letters.create(**given)
        assert [each.where for each in refused.value.problems] == [field]
        assert "anna" not in str(refused.value)
        assert store.letters.count() == 0


class TestD2Update:
    def test_empty_texts_keep_what_is_there(self, store: Store) -> None:
        letter_id = store.create(recommended_action="escalate")
        assert store.letters.update_status(letter_id, "resolved", "by_hand", "they called back", 7)
        assert store.letters.update_status(letter_id, "resolved")
        found = store.get(letter_id)
        assert (found.resolution_type, found.resolution_note) == ("by_hand", "they called back")
        assert (found.resolved_by_id, found.recommended_action) == ("7", "escalate")

    def test_opened_again_it_no_longer_says_how_it_was_settled(self, store: Store) -> None:
        letter_id = store.create()
        store.letters.update_status(letter_id, "rejected", "no_failure", "they called back", 7)
        store.letters.update_status(letter_id, "pending")
        found = store.get(letter_id)
        assert (found.resolution_type, found.resolution_note, found.resolved_by_id) == ("", "", None)
        assert (found.resolved_at, found.archived_at, found.metadata) == (None, None, {"reopened": 1})

    def test_opened_in_bulk_it_no_longer_says_how_it_was_settled(self, store: Store) -> None:
        letter_id = store.create()
        store.letters.update_status(letter_id, "rejected", "no_failure", "a test", 7)
        assert store.letters.bulk_update_status([letter_id], "pending") == 1
        found = store.get(letter_id)
        assert (found.resolution_type, found.resolution_note, found.resolved_by_id) == ("", "", None)
        assert found.metadata == {"reopened": 1}

    def test_resolved_stamps_the_moment(self, store: Store, now: ManualClock) -> None:
        letter_id = store.create()
        now.advance(HOUR)
        store.letters.update_status(letter_id, "resolved", recommended_action="none")
        found = store.get(letter_id)
        assert (found.resolved_at, found.updated_at) == (START + HOUR, START + HOUR)
        assert (found.recommended_action, found.is_resolved) == ("none", True)

    def test_an_unknown_id_is_false_and_an_unknown_status_a_value_error(self, store: Store) -> None:
        assert store.letters.update_status(str(new_id()), "resolved") is False
        with pytest.raises(ValueError, match="permanently_failed"):
            store.letters.update_status(store.create(), "done")

    def test_in_bulk_returns_how_many_were_changed(self, store: Store) -> None:
        ids = [store.create() for _ in range(3)]
        assert store.letters.bulk_update_status([*ids[:2], ids[0], "no id"], "rejected") == 2
        assert [store.status(each) for each in ids] == ["rejected", "rejected", "pending"]
        assert store.letters.bulk_update_status([], "rejected") == 0

    def test_a_letter_over_an_erasure_that_was_not_made_is_not_closed(self, store: Store) -> None:
        entry_id = str(store.entry(OutboxStatus.ABANDONED))
        letter_id = store.create(entity_type="entry", entity_id=entry_id)
        for status in ("resolved", "rejected", "archived"):
            with pytest.raises(Conflict):
                store.letters.update_status(letter_id, status)
            assert store.letters.bulk_update_status([letter_id], status) == 0
        assert store.status(letter_id) == "pending"


class TestD3Find:
    def test_by_status_is_oldest_first(self, store: Store, now: ManualClock) -> None:
        ids = self.some(store, now)
        store.letters.update_status(ids[1], "rejected")
        found = store.letters.find_by_status("pending")
        assert [each.id for each in found] == [ids[0], ids[2], ids[3]]
        assert [each.id for each in store.letters.find_by_status("pending", limit=2)] == [ids[0], ids[2]]
        assert [each.id for each in store.letters.find_by_status("pending", "message", "Refused")] == [ids[3]]

    def test_is_newest_first_with_offset_and_limit_and_without_a_filter_all(
        self, store: Store, now: ManualClock
    ) -> None:
        ids = self.some(store, now)
        store.bring(ids[1], "archived")
        assert [each.id for each in store.letters.find()] == ids[::-1]
        assert [each.id for each in store.letters.find(offset=1, limit=2)] == [ids[2], ids[1]]
        assert store.letters.find(offset=9) == []

    def test_of_the_same_moment_keeps_one_order(self, store: Store) -> None:
        ids = [store.create() for _ in range(5)]
        pages = [store.letters.find(offset=n, limit=1)[0].id for n in range(5)]
        assert pages == [each.id for each in store.letters.find()]
        assert sorted(pages) == sorted(ids)

    def test_count_agrees(self, store: Store, now: ManualClock) -> None:
        self.some(store, now)
        for which in (
            {},
            {"status": "pending"},
            {"domain": "message"},
            {"domain": "message", "failure_type": "Refused"},
            {"status": "resolved"},
        ):
            assert store.letters.count(**which) == len(store.letters.find(**which)), which

    def some(self, store: Store, now: ManualClock) -> list[str]:
        made = []
        for domain, error in (
            ("external_call", "Timeout"),
            ("message", "Timeout"),
            ("external_call", "Refused"),
            ("message", "Refused"),
        ):
            made.append(store.create(domain, error))
            now.advance(HOUR)
        return made


def test_d4_a_window_has_both_its_ends_and_every_status(store: Store, now: ManualClock) -> None:
    for status in ("pending", "resolved", "archived"):
        store.bring(store.create(), status)
        now.advance(HOUR)
    count = store.letters.count_created_in_window
    assert count(START, START + 2 * HOUR) == 3
    assert count(START + HOUR, START + HOUR) == 1
    assert count(START + timedelta(minutes=1), START + timedelta(minutes=59)) == 0


class TestD5:
    def test_replayable_is_pending_and_below_the_stored_cap(self, store: Store, now: ManualClock) -> None:
        fresh = store.create()
        now.advance(HOUR)
        store.create(retry_count=2)
        patient = store.create(retry_count=2, max_retries=3)
        store.letters.update_status(store.create(), "requires_review")
        for asked in (0, 2, 99):
            found = store.letters.find_replayable(asked)
            assert [each.id for each in found] == [fresh, patient]
        assert store.letters.find_replayable(2, "message") == []
        assert len(store.letters.find_replayable(2, limit=1)) == 1

    def test_late_by_domain_or_after_24_hours(self, store: Store, now: ManualClock) -> None:
        call, message = store.create("external_call"), store.create("message")
        both = sorted([call, message], key=UUID)
        settled = store.create("message")
        store.letters.update_status(settled, "resolved")
        thresholds = {"message": HOUR}

        def late() -> list[str]:
            return [each.id for each in store.letters.find_sla_breached(now(), thresholds)]

        assert late() == []
        now.advance(HOUR)
        assert late() == [message]
        now.advance(DAY - HOUR - timedelta(microseconds=1))
        assert late() == [message]
        now.advance(timedelta(microseconds=1))
        assert late() == both


class TestD6Facets:
    def test_each_leaves_out_its_own_choice_and_zeros(self, store: Store) -> None:
        store.create("external_call")
        store.letters.update_status(store.create("external_call"), "resolved")
        store.create("message")
        facets = store.letters.get_facet_counts
        assert facets() == {
            "by_status": {"pending": 2, "resolved": 1},
            "by_domain": {"external_call": 2, "message": 1},
        }
        assert facets(status="resolved", domain="message") == {
            "by_status": {"pending": 1},
            "by_domain": {"external_call": 1},
        }

    def test_match_exactly(self, store: Store) -> None:
        store.create("message")
        with pytest.raises(ValueError, match="external_call"):
            store.letters.get_facet_counts(domain="mess")


class TestD13:
    def test_pending_by_domain_and_its_count(self, store: Store, now: ManualClock) -> None:
        first = store.create("message")
        now.advance(HOUR)
        second = store.create("message")
        store.create("external_call")
        store.letters.update_status(store.create("message"), "resolved")
        assert [each.id for each in store.letters.get_pending_by_domain("message")] == [first, second]
        assert [each.id for each in store.letters.get_pending_by_domain("message", limit=1)] == [first]
        assert store.letters.get_pending_count_by_domain("message") == 2

    def test_increment_stamps_the_moment(self, store: Store, now: ManualClock) -> None:
        letter_id = store.create()
        now.advance(HOUR)
        assert store.letters.increment_retry_count(letter_id)
        found = store.get(letter_id)
        assert (found.retry_count, found.last_retry_at, found.can_retry) == (1, START + HOUR, True)

    def test_mark_as_resolved(self, store: Store) -> None:
        letter_id = store.create()
        assert store.letters.mark_as_resolved(letter_id, "by_hand", "it was the firewall", "officer:1")
        found = store.get(letter_id)
        assert (found.status, found.resolved_by_id) == ("resolved", "officer:1")
        assert found.resolution_note == "it was the firewall"

    def test_expired_ones_are_found_and_those_that_never_expire_are_not(self, store: Store) -> None:
        store.create()
        later, sooner = store.create(expires_at=START + DAY), store.create(expires_at=START + HOUR)
        found = store.letters.find_expired(START + DAY)
        assert [each.id for each in found] == [sooner, later]
        before = store.letters.get_expired_operations(START + DAY)
        assert [each.id for each in before] == [sooner]
        assert len(store.letters.get_expired_operations(START + 2 * DAY, limit=1)) == 1


class TestNothingPersonal:
    """Whatever is not on the list raises, with the name of the key and without its value."""

    @pytest.mark.parametrize(
        "argument", ["snapshot_data", "request_data", "response_data", "metadata", "entity_refs"]
    )
    def test_other_keys_are_refused(self, store: Store, argument: str) -> None:
        keys = ["email", "message", "body", "name", "headers", "status", "anna"]
        with pytest.raises(Refused) as refused:
            store.create(**{argument: dict.fromkeys(keys, "anna@people.example")})
        assert isinstance(refused.value, ValueError)
        assert [each.where for each in refused.value.problems] == [f"{argument}.{key}" for key in keys]
        assert "anna@people.example" not in str(refused.value)
        assert store.letters.count() == 0

    @pytest.mark.parametrize(
        ("argument", "key", "value"),
        [
            ("snapshot_data", "attempts", "anna@people.example"),
            ("snapshot_data", "operation", "anna@people.example"),
            ("response_data", "status_code", 4711),
            ("response_data", "latency_ms", {"to": "anna@people.example"}),
            ("metadata", "redrive_id", "anna@people.example"),
            ("metadata", "force_redrive_count", True),
            ("entity_refs", "request_id", "anna@people.example"),
        ],
    )
    def test_other_values_are_refused(self, store: Store, argument: str, key: str, value: object) -> None:
        with pytest.raises(Refused) as refused:
            store.create(**{argument: {key: value}})
        assert [each.where for each in refused.value.problems] == [f"{argument}.{key}"]
        assert "anna" not in str(refused.value)

    def test_a_key_that_is_itself_personal_is_not_repeated(self, store: Store) -> None:
        with pytest.raises(Refused) as refused:
            store.create(metadata={"anna@people.example": 1})
        assert "anna" not in str(refused.value)

    def test_a_message_is_refused(self, store: Store) -> None:
        with pytest.raises(Refused, match="error_message") as refused:
            store.create(error_message="anna@people.example does not exist")
        assert "anna" not in str(refused.value)

    @pytest.mark.parametrize(("field", "value"), [("entity_type", "customer"), ("entity_id", "anna")])
    def test_an_entity_is_an_entry_a_delivery_or_a_request_of_ours(
        self, store: Store, field: str, value: str
    ) -> None:
        given = {"entity_type": "entry", "entity_id": str(new_id()), field: value}
        with pytest.raises(Refused) as refused:
            store.create(**given)
        assert [each.where for each in refused.value.problems] == [field]

    def test_details_of_a_failed_replay_are_held_to_the_same(self, store: Store) -> None:
        letter_id = store.create()
        taken = store.letters.try_acquire_for_replay(letter_id, 2)
        assert taken is not None
        with pytest.raises(Refused, match=r"error_details\.message"):
            store.letters.complete_replay(
                letter_id, False, error_details={"message": "anna"}, acquired=taken.acquired
            )
        assert store.status(letter_id) == "replaying"

    def test_a_note_is_not_in_the_repr(self, store: Store) -> None:
        letter_id = store.create()
        store.letters.mark_as_resolved(letter_id, "by_hand", "Anna has called")
        assert "Anna" not in repr(store.get(letter_id))


def test_an_application_s_own_sessions_will_do(databases: dict[str, Database]) -> None:
    letters = SQLFailedOperationRepository(databases["sqlite"].sessions, KEYRING)
    letter = letters.create("message", "Refused")
    assert letters.get_by_id(letter.id) == letter


@pytest.mark.parametrize("kind", [InMemoryFailedOperationRepository, SQLFailedOperationRepository])
def test_every_store_has_every_method_with_the_same_arguments(kind: type[FailedOperationRepository]) -> None:
    for name, method in inspect.getmembers(FailedOperationRepository, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(getattr(kind, name)) == inspect.signature(method), name
