"""Statuses and ids that everything else uses."""

from __future__ import annotations

from datetime import UTC, datetime

from effaced.core import clock
from effaced.model import CLOSED, UNEXECUTED, Correction, RequestStatus, SubjectRef, new_id


def test_every_status_is_unexecuted_or_closed_or_running() -> None:
    assert not UNEXECUTED & CLOSED
    assert UNEXECUTED | CLOSED | {RequestStatus.RUNNING} == set(RequestStatus)


def test_the_former_name_of_refused_is_still_read() -> None:
    assert RequestStatus("denied") is RequestStatus.REFUSED


def test_ids_are_version_7_and_sorted_by_time() -> None:
    with clock.pretend(datetime(2026, 1, 1, tzinfo=UTC)):
        earlier = new_id()
    with clock.pretend(datetime(2026, 1, 2, tzinfo=UTC)):
        later = new_id()

    assert earlier.version == later.version == 7
    assert earlier < later


def test_personal_values_are_kept_out_of_reprs() -> None:
    assert "c-81" not in repr(SubjectRef("crm_contact", "c-81"))
    assert "ada@example.com" not in repr(Correction("email", "ada@example.com"))
