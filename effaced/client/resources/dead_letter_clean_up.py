"""Archiving and removing settled dead letters, and what is left of them.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.runners import M, Resource, listing, operation


class ArchivedDeadLetters(Answer):
    archived: int
    """At most 1,000 at once."""

    left: int
    """How many there are still to archive."""


class DeadLetterSummary(Answer):
    """What is left of dead letters of one kind that were evicted."""

    id: UUID
    domain: str
    error: str
    code: str | None
    count: int
    status: str
    """An `active` one still grows."""

    first_seen: datetime
    last_seen: datetime
    compressed_at: datetime
    stale_at: datetime | None
    archived_at: datetime | None


class DeadLetterSummaryTotals(Answer):
    """Of all summaries, whatever the filter."""

    summaries: int
    dead_letters: int
    """How many they stand for."""

    by_status: dict[str, int]
    by_domain: dict[str, int]


class DeadLetterSummaryPage(Listed[DeadLetterSummary]):
    totals: DeadLetterSummaryTotals


class EvictedDeadLetters(Answer):
    evicted: int


class EvictionPreview(Answer):
    count: int
    evictable: int


class PurgePreview(Answer):
    older_than_days: int
    purgeable: int


class PurgedDeadLetters(Answer):
    purged: int


class DeadLetterCleanUpApi(Resource[M]):
    """Archiving and removing settled dead letters, and what is left of them."""

    @operation
    def archive_dead_letters(
        self, *, older_than_days: int | None = None, idempotency_key: str | None = None
    ) -> Call[ArchivedDeadLetters]:
        """Archive what was settled long enough ago, at most 1,000 at once.

        Needs the scope `operate:write`.
        """
        return Call(
            "archive_dead_letters",
            "POST",
            "/api/v1/dead-letters/archive",
            ArchivedDeadLetters,
            body={} | given(older_than_days=older_than_days),
            idempotency_key=idempotency_key,
        )

    @operation
    def preview_purge(self, *, older_than_days: int) -> Call[PurgePreview]:
        """How many dead letters a purge with the same age would remove.

        Needs the scope `operate:read`.
        """
        return Call(
            "preview_purge",
            "GET",
            "/api/v1/dead-letters/purge",
            PurgePreview,
            query={"older_than_days": older_than_days},
        )

    @operation
    def purge_dead_letters(
        self, *, older_than_days: int, expected: int, reason: str, idempotency_key: str | None = None
    ) -> Call[PurgedDeadLetters]:
        """Remove archived dead letters for good.

        409 `out_of_date` if that would not be exactly as many as were expected.

        Needs the scope `operate:write`.
        """
        return Call(
            "purge_dead_letters",
            "POST",
            "/api/v1/dead-letters/purge",
            PurgedDeadLetters,
            body={"older_than_days": older_than_days, "expected": expected, "reason": reason},
            idempotency_key=idempotency_key,
        )

    @operation
    def preview_eviction(
        self,
        *,
        count: int,
        domain: Literal["external_call", "verification", "local_execution", "attestation", "message"]
        | None = None,
    ) -> Call[EvictionPreview]:
        """How many dead letters an eviction of the same count and domain would remove.

        Needs the scope `operate:read`.
        """
        return Call(
            "preview_eviction",
            "GET",
            "/api/v1/dead-letters/evict",
            EvictionPreview,
            query={"count": count, "domain": domain},
        )

    @operation
    def evict_dead_letters(
        self,
        *,
        count: int,
        reason: str,
        domain: Literal["external_call", "verification", "local_execution", "attestation", "message"]
        | None = None,
        compress: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[EvictedDeadLetters]:
        """Remove the oldest archived dead letters for good.

        Needs the scope `operate:write`.
        """
        return Call(
            "evict_dead_letters",
            "POST",
            "/api/v1/dead-letters/evict",
            EvictedDeadLetters,
            body={"count": count, "reason": reason} | given(domain=domain, compress=compress),
            idempotency_key=idempotency_key,
        )

    @listing
    def list_dead_letter_summaries(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        domain: Literal["external_call", "verification", "local_execution", "attestation", "message"]
        | None = None,
        status: Literal["active", "stale", "archived"] | None = None,
    ) -> Listing[DeadLetterSummaryPage, DeadLetterSummary]:
        """What is left of evicted dead letters, last seen first, and totals of all summaries.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_dead_letter_summaries",
            "GET",
            "/api/v1/dead-letters/summaries",
            DeadLetterSummaryPage,
            query={"after": after, "limit": limit, "domain": domain, "status": status},
        )

    @operation
    def get_dead_letter_summary(self, summary_id: UUID | str) -> Call[DeadLetterSummary]:
        """One summary.

        Needs the scope `operate:read`.
        """
        return Call(
            "get_dead_letter_summary",
            "GET",
            f"/api/v1/dead-letters/summaries/{part(summary_id)}",
            DeadLetterSummary,
        )

    @operation
    def set_dead_letter_summary_status(
        self,
        summary_id: UUID | str,
        *,
        status: Literal["stale", "archived"],
        idempotency_key: str | None = None,
    ) -> Call[DeadLetterSummary]:
        """Mark a summary as stale, so that it no longer grows, or as archived. There is no way back.

        Needs the scope `operate:write`.
        """
        return Call(
            "set_dead_letter_summary_status",
            "POST",
            f"/api/v1/dead-letters/summaries/{part(summary_id)}/status",
            DeadLetterSummary,
            body={"status": status},
            idempotency_key=idempotency_key,
        )
