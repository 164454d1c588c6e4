"""Which requests a page is about, as its URL says it. Badge, list and link are made from the same query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from flask import request, url_for

from effaced.console.current import by_hand
from effaced.console.urls import not_allowed, text_arg, with_query, word_arg
from effaced.console.words import label
from effaced.model import CLOSED as CLOSED_STATUSES
from effaced.model import RequestKind, RequestStatus
from effaced.requests.read import Blocker, Due, OpenState, RequestFilter
from effaced.requests.status import TRANSITIONS

OPEN, CLOSED, ALL = "open", "closed", "all"
STATES: tuple[RequestStatus | OpenState, ...] = (*RequestStatus, *OpenState)
_IN_USE = {each.target for each in TRANSITIONS}
# The filter offers no status that no request can have.
STATES_IN_USE = tuple(
    state
    for status in RequestStatus
    if status in _IN_USE
    for state in ((status, OpenState.NOT_VERIFIED) if status is RequestStatus.RUNNING else (status,))
)
STATUSES = (OPEN, CLOSED, ALL, *(state.value for state in STATES))
DUE_WORDS = {Due.OVERDUE: "overdue", Due.SOON: "due in 7 days"}
SOONEST, LATEST = "soonest", "latest"


@dataclass(frozen=True, slots=True)
class RequestQuery:
    """The filters of the list.

    `found` holds the ids that a subject search returned, `subject` that search's token.
    """

    status: str = OPEN
    due: Due | None = None
    kind: RequestKind | None = None
    blocked: Blocker | None = None
    order: str | None = None
    subject: str | None = None
    found: tuple[UUID, ...] | None = None

    @property
    def latest_first(self) -> bool:
        """Open requests by the next deadline; in a list with closed ones the latest matter most."""
        return self.order == LATEST or (self.order is None and self.status in (CLOSED, ALL, *_CLOSED))

    def filter(self) -> RequestFilter:
        chosen = self._state
        is_open = {OPEN: True, CLOSED: False}.get(self.status)
        return RequestFilter(is_open, chosen, self.due, self.kind, self.blocked, self.found, by_hand())

    @property
    def _state(self) -> RequestStatus | OpenState | None:
        return next((state for state in STATES if state.value == self.status), None)

    def url(self, *, after: str | None = None) -> str:
        values = {
            "status": self.status if self.status != self._usual_status else None,
            "due": self.due,
            "kind": self.kind,
            "blocked": self.blocked,
            "order": self.order,
            "subject": self.subject,
            "after": after,
        }
        return with_query(url_for("console.requests.index"), values)

    def turned(self) -> RequestQuery:
        """The same list in the other order."""
        return replace(self, order=SOONEST if self.latest_first else LATEST)

    @property
    def _usual_status(self) -> str:
        return ALL if self.subject else OPEN

    @property
    def filtered(self) -> bool:
        return replace(self, order=None) != RequestQuery()

    def words(self) -> str:
        """The filters as people would say them."""
        parts = [
            label(self._state).lower()
            if self._state
            else {OPEN: "open", CLOSED: "closed", ALL: "open and closed"}[self.status],
            DUE_WORDS[self.due] if self.due else "",
            label(self.kind).lower() if self.kind else "",
            f"blocked by {label(self.blocked).lower()}" if self.blocked else "",
            "of the person searched for" if self.subject else "",
        ]
        return ", ".join(part for part in parts if part)


_CLOSED = tuple(each.value for each in CLOSED_STATUSES)


def query_of_url() -> RequestQuery:
    """The query that the current URL asks for; refuses words that don't exist, with those that do."""
    subject = text_arg("subject", longest=4_000)
    status = text_arg("status") or (ALL if subject else OPEN)
    if status not in STATUSES:
        raise not_allowed("status", STATUSES)
    order = text_arg("order")
    if order not in (None, SOONEST, LATEST):
        raise not_allowed("order", (SOONEST, LATEST))
    return RequestQuery(
        status=status,
        due=word_arg("due", Due),
        kind=word_arg("kind", RequestKind),
        blocked=word_arg("blocked", Blocker),
        order=order,
        subject=subject,
    )


def current_page() -> str | None:
    """Where the page in the URL begins."""
    return request.args.get("after") or None
