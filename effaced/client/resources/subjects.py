"""People, by keyed hashes that stand for them.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Listing, given, part
from effaced.client.resources.shared import (
    Request,
)
from effaced.client.runners import M, Resource, listing


class Subject(Answer):
    """A person for whom there are requests that the caller may know of."""

    key: str
    """Stands for the person in paths, queries and the audit trail."""

    requests: int
    open: int
    """How many of them are not closed yet."""

    last_received_at: datetime


class SubjectHistory(Listed[Request]):
    """The requests of one person, the latest due date first."""

    key: str


class SubjectList(Listed[Subject]):
    pass


class SubjectsApi(Resource[M]):
    """People, by keyed hashes that stand for them."""

    @listing
    def search(
        self,
        *,
        id: str | None = None,
        type: str | None = None,
        identifier: str | None = None,
        value: str | None = None,
        idempotency_key: str | None = None,
    ) -> Listing[SubjectList, Subject]:
        """Find the keys of a person by what is known of them. The trail says that somebody was looked for.

        A key finds people for whom it has sent requests, one with `decide:read` everybody for whom there
        are any. Somebody unknown looks the same as somebody of another key.

        Needs the scope `requests:read` or `decide:read`.
        """
        return Listing(
            "search_subjects",
            "POST",
            "/api/v1/subjects/search",
            SubjectList,
            body={} | given(id=id, type=type, identifier=identifier, value=value),
            idempotency_key=idempotency_key,
        )

    @listing
    def get(
        self, subject_key: UUID | str, *, after: str | None = None, limit: int | None = None
    ) -> Listing[SubjectHistory, Request]:
        """The requests of one person, the latest due date first: those that this key has sent.

        A key with `decide:read` sees everybody's.

        Needs the scope `requests:read` or `decide:read`.
        """
        return Listing(
            "get_subject",
            "GET",
            f"/api/v1/subjects/{part(subject_key)}",
            SubjectHistory,
            query={"after": after, "limit": limit},
        )
