"""What the product may not do with a dead letter, no call of a repository may do either, in every store."""

from __future__ import annotations

import threading

import pytest
from saga_cast import KEYRING
from waiting import PATIENCE

from effaced.core.errors import Conflict, Refused
from effaced.deadletters.data import FailedOperationData
from effaced.deadletters.memory import InMemoryFailedOperationRepository
from effaced.deadletters.rules import SLA
from effaced.model import DeadLetterDomain, DeadLetterStatus, OutboxStatus, new_id

from .conftest import Store

# To each status, from which ones a program may change a dead letter. Its own: to add what was not said yet.
FROM = {
    "pending": {"pending", "reviewing", "permanently_failed", "rejected"},
    "reviewing": {"reviewing", "pending", "requires_review"},
    "replaying": set(),
    "requires_review": {"requires_review", "pending", "reviewing"},
    "permanently_failed": {"permanently_failed", "pending", "reviewing", "requires_review"},
    "resolved": {"resolved", "pending", "reviewing", "requires_review", "permanently_failed"},
    "rejected": {"rejected", "pending", "reviewing", "requires_review", "permanently_failed"},
    "archived": {"resolved", "rejected"},
}


def in_every_status(store: Store) -> dict[str, str]:
    """A dead letter in each status; their ids."""
    made = {}
    for status in DeadLetterStatus:
        made[status.value] = store.create()
        store.bring(made[status.value], status.value)
    return made


@pytest.mark.parametrize("to", FROM)
class TestChanges:
    """Every pair of statuses, walked."""

    def test_one_is_refused_unless_the_table_has_it(self, store: Store, to: str) -> None:
        for source, letter_id in in_every_status(store).items():
            before = store.get(letter_id)
            if source in FROM[to]:
                assert store.letters.update_status(letter_id, to) is True
                assert store.status(letter_id) == to
            else:
                with pytest.raises(Conflict, match=f"is {source}; it can't become {to}"):
                    store.letters.update_status(letter_id, to, "by_hand", "seen to", 7)
                assert store.get(letter_id) == before

    def test_of_many_only_those_are_changed_that_may_be(self, store: Store, to: str) -> None:
        letters = in_every_status(store)
        assert store.letters.bulk_update_status(list(letters.values()), to) == len(FROM[to])
        after = {source: to if source in FROM[to] else source for source in letters}
        assert {source: store.status(letter_id) for source, letter_id in letters.items()} == after


class TestPurge:
    @pytest.mark.parametrize("status", ["pending", "reviewing", "requires_review", "permanently_failed"])
    def test_does_not_get_what_nobody_has_settled(self, store: Store, status: str) -> None:
        letter_id = store.create()
        store.bring(letter_id, status)
        assert store.letters.bulk_update_status([letter_id], "archived") == 0
        with pytest.raises(Conflict):
            store.letters.update_status(letter_id, "archived")
        with pytest.raises(ValueError, match="not archived"):
            store.letters.purge_archived([letter_id])
        assert store.status(letter_id) == status


def test_a_given_up_one_that_is_given_up_again_keeps_what_was_said(store: Store) -> None:
    letter_id = store.create()
    store.letters.update_status(letter_id, "permanently_failed", "no_contact", "they are gone")
    store.letters.update_status(letter_id, "permanently_failed", recommended_action="escalate")
    found = store.get(letter_id)
    assert (found.resolution_type, found.resolution_note) == ("no_contact", "they are gone")
    assert found.recommended_action == "escalate"


class TestTwiceForTheSameWork:
    @pytest.mark.parametrize(
        ("first", "second"), [("external_call", "attestation"), ("attestation", "external_call")]
    )
    def test_a_call_and_its_attestation_are_one(self, store: Store, first: str, second: str) -> None:
        entry_id = str(store.entry(OutboxStatus.ABANDONED))
        store.create(first, entity_type="entry", entity_id=entry_id)
        with pytest.raises(Conflict, match="already"):
            store.create(second, entity_type="entry", entity_id=entry_id)
        store.create("verification", entity_type="entry", entity_id=entry_id)
        assert store.letters.count() == 2

    def test_a_request_is_executed_once(self, store: Store) -> None:
        request_id = str(new_id())
        store.create("local_execution", entity_refs={"request_id": request_id})
        with pytest.raises(Conflict, match="already"):
            store.create("local_execution", entity_type="request", entity_id=request_id)
        store.create("local_execution", entity_refs={"request_id": str(new_id())})
        assert store.letters.count() == 2

    @pytest.mark.parametrize("status", ["resolved", "archived"])
    def test_nor_when_the_first_is_settled(self, store: Store, status: str) -> None:
        link = {"entity_refs": {"request_id": str(new_id())}}
        store.bring(store.create("local_execution", **link), status)
        with pytest.raises(Conflict, match="already"):
            store.create("local_execution", **link)

    def test_those_about_no_work_are_about_different_things(self, store: Store) -> None:
        for _ in range(2):
            store.create("external_call")
        assert store.letters.count() == 2

    def test_of_many_who_open_one_at_once_one_does(self, store: Store) -> None:
        refs = {"request_id": str(new_id())}
        together = threading.Barrier(8)
        made: list[FailedOperationData] = []
        refused: list[Conflict] = []

        def race() -> None:
            together.wait(PATIENCE)
            try:
                made.append(store.letters.create("local_execution", "Timeout", entity_refs=refs))
            except Conflict as error:
                refused.append(error)

        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert (len(made), len(refused), store.letters.count()) == (1, 7, 1)


@pytest.mark.parametrize(
    ("domain", "link"),
    [
        ("external_call", "delivery"),
        ("verification", "delivery"),
        ("attestation", "delivery"),
        ("message", "entry"),
        ("local_execution", "entry"),
        ("local_execution", "delivery"),
    ],
)
def test_a_link_that_the_domain_does_not_have_is_refused(store: Store, domain: str, link: str) -> None:
    """It would be found again by another id than the product's dead letter for the same work."""
    some_id = str(new_id())
    for argument, given in (
        ("entity_type", {"entity_type": link, "entity_id": some_id}),
        ("entity_refs", {"entity_refs": {f"{link}_id": some_id}}),
    ):
        with pytest.raises(Refused) as refused:
            store.create(domain, **given)
        assert [each.where for each in refused.value.problems] == [argument]
    assert store.letters.count() == 0


def test_what_to_do_first_is_what_the_product_recommends(store: Store) -> None:
    recommended = {domain: store.get(store.create(domain)).recommended_action for domain in DeadLetterDomain}
    assert recommended == {
        "external_call": "fix_and_requeue",
        "verification": "check_with_vendor",
        "local_execution": "fix_and_requeue",
        "attestation": "do_by_hand_and_attest",
        "message": "requeue_when_it_answers",
    }
    given_up = store.create("external_call", error_code="max_age", metadata={"failed_replays": 2})
    assert store.get(given_up).recommended_action == "escalate"


def test_the_waits_of_a_repository_are_held_to_the_rules_of_the_setting() -> None:
    for waits in ({"bogus": SLA["message"]}, {"message": -SLA["message"]}):
        with pytest.raises(Refused) as refused:
            InMemoryFailedOperationRepository(KEYRING, sla_thresholds=waits)
        assert [each.where for each in refused.value.problems] == ["sla_thresholds"]
        assert isinstance(refused.value, ValueError)
