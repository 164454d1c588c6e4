"""The progress of an erasure in batches: by table, all together, and only while it is under way."""

from __future__ import annotations

import pytest

from effaced.model import RequestStatus
from effaced.requests.progress import BatchProgress, TableProgress, progress_of
from effaced.requests.tables import Request


def request(status: RequestStatus, counts: dict[str, list[int]] | None) -> Request:
    return Request(status=status, batch_counts=counts)


def test_tables_keep_their_order_and_add_up() -> None:
    progress = progress_of(request(RequestStatus.APPROVED, {"visits": [300, 1_000], "orders": [5, 5]}))
    assert progress == BatchProgress((TableProgress("visits", 300, 1_000), TableProgress("orders", 5, 5)))
    assert (progress.done, progress.total) == (305, 1_005)


@pytest.mark.parametrize("counts", [None, {}])
def test_an_execution_without_batches_has_no_progress(counts: dict[str, list[int]] | None) -> None:
    assert progress_of(request(RequestStatus.APPROVED, counts)) is None


@pytest.mark.parametrize("status", [each for each in RequestStatus if each is not RequestStatus.APPROVED])
def test_batches_of_the_past_are_no_progress(status: RequestStatus) -> None:
    assert progress_of(request(status, {"visits": [1, 2]})) is None
