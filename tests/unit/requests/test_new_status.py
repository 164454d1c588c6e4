"""Whoever adds a request status is told what is missing: its group, its badge, what happens next."""

from __future__ import annotations

import pytest

from effaced.console.words import NEXT_ACTIONS, badge
from effaced.model import CLOSED, UNEXECUTED, RequestStatus

# Those of which the page says more than the status alone could.
EXPLAINED = {RequestStatus.REVIEW, RequestStatus.APPROVED, RequestStatus.RUNNING, RequestStatus.COMPLETED}


@pytest.mark.parametrize("status", RequestStatus)
def test_every_status_is_before_during_or_after_execution(status: RequestStatus) -> None:
    groups = [status in UNEXECUTED, status is RequestStatus.RUNNING, status in CLOSED]
    assert groups.count(True) == 1


@pytest.mark.parametrize("status", RequestStatus)
def test_every_status_has_a_badge(status: RequestStatus) -> None:
    assert badge(status).word


@pytest.mark.parametrize("status", RequestStatus)
def test_every_status_says_what_happens_next(status: RequestStatus) -> None:
    assert (status in NEXT_ACTIONS) != (status in EXPLAINED)
