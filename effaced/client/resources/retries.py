"""When calls are tried again, and what their attempts have come to.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.resources.shared import (
    RetryPolicy,
)
from effaced.client.runners import M, Resource, listing, operation


class AttemptFigures(Answer):
    """What attempts have come to."""

    attempts: int
    entries: int
    """Different ones within an hour; over several hours their sum."""

    requests: int
    """Like `entries`."""

    retries: int
    """Attempts after the first."""

    outcomes: dict[str, int]
    success_by_attempt: dict[str, int]
    """How many succeeded at which attempt."""

    failure_by_reason: dict[str, int]
    avg_latency_ms: float | None
    p95_latency_ms_estimate: float | None


class HourFigures(Answer):
    attempts: int
    entries: int
    """Different ones within an hour; over several hours their sum."""

    requests: int
    """Like `entries`."""

    retries: int
    """Attempts after the first."""

    outcomes: dict[str, int]
    success_by_attempt: dict[str, int]
    """How many succeeded at which attempt."""

    failure_by_reason: dict[str, int]
    avg_latency_ms: float | None
    p95_latency_ms_estimate: float | None
    hour: datetime
    """When the hour began."""


class ResolverFigures(Answer):
    attempts: int
    entries: int
    """Different ones within an hour; over several hours their sum."""

    requests: int
    """Like `entries`."""

    retries: int
    """Attempts after the first."""

    outcomes: dict[str, int]
    success_by_attempt: dict[str, int]
    """How many succeeded at which attempt."""

    failure_by_reason: dict[str, int]
    avg_latency_ms: float | None
    p95_latency_ms_estimate: float | None
    resolver: str


class ResolverFiguresList(Listed[ResolverFigures]):
    hours: int


class RetrySummary(Answer):
    attempts: int
    entries: int
    """Different ones within an hour; over several hours their sum."""

    requests: int
    """Like `entries`."""

    retries: int
    """Attempts after the first."""

    outcomes: dict[str, int]
    success_by_attempt: dict[str, int]
    """How many succeeded at which attempt."""

    failure_by_reason: dict[str, int]
    avg_latency_ms: float | None
    p95_latency_ms_estimate: float | None
    hours: int
    resolver: str | None
    by_resolver: dict[str, AttemptFigures]
    retention_hours: int
    """How long hours are kept."""


class RetryTimeseries(Listed[HourFigures]):
    hours: int
    resolver: str | None


class RetriesApi(Resource[M]):
    """When calls are tried again, and what their attempts have come to."""

    @operation
    def get_global_retry_policy(self) -> Call[RetryPolicy]:
        """The policy of everything.

        Needs the scope `operate:read`.
        """
        return Call("get_global_retry_policy", "GET", "/api/v1/retries/policies/global", RetryPolicy)

    @operation
    def set_global_retry_policy(
        self, *, policy: Mapping[str, Any], reason: str | None = None
    ) -> Call[RetryPolicy]:
        """Say which fields differ from the settings, for everything.

        Needs the scope `operate:write`.
        """
        return Call(
            "set_global_retry_policy",
            "PUT",
            "/api/v1/retries/policies/global",
            RetryPolicy,
            body={"policy": policy} | given(reason=reason),
        )

    @operation
    def delete_global_retry_policy(self) -> Call[RetryPolicy]:
        """Let nothing differ from the settings. The answer is what is in force then.

        Needs the scope `operate:write`.
        """
        return Call("delete_global_retry_policy", "DELETE", "/api/v1/retries/policies/global", RetryPolicy)

    @operation
    def undo_global_retry_policy(self, *, idempotency_key: str | None = None) -> Call[RetryPolicy]:
        """Go back to before the last change. Undoing twice restores it.

        Needs the scope `operate:write`.
        """
        return Call(
            "undo_global_retry_policy",
            "POST",
            "/api/v1/retries/policies/global/undo",
            RetryPolicy,
            idempotency_key=idempotency_key,
        )

    @operation
    def get_resolver_retry_policy(self, resolver: UUID | str) -> Call[RetryPolicy]:
        """The policy of one resolver.

        Needs the scope `operate:read`.
        """
        return Call(
            "get_resolver_retry_policy",
            "GET",
            f"/api/v1/retries/policies/resolvers/{part(resolver)}",
            RetryPolicy,
        )

    @operation
    def set_resolver_retry_policy(
        self, resolver: UUID | str, *, policy: Mapping[str, Any], reason: str | None = None
    ) -> Call[RetryPolicy]:
        """Say which fields differ for one resolver.

        Needs the scope `operate:write`.
        """
        return Call(
            "set_resolver_retry_policy",
            "PUT",
            f"/api/v1/retries/policies/resolvers/{part(resolver)}",
            RetryPolicy,
            body={"policy": policy} | given(reason=reason),
        )

    @operation
    def delete_resolver_retry_policy(self, resolver: UUID | str) -> Call[RetryPolicy]:
        """Let nothing differ for one resolver. The answer is what is in force then.

        Needs the scope `operate:write`.
        """
        return Call(
            "delete_resolver_retry_policy",
            "DELETE",
            f"/api/v1/retries/policies/resolvers/{part(resolver)}",
            RetryPolicy,
        )

    @operation
    def undo_resolver_retry_policy(
        self, resolver: UUID | str, *, idempotency_key: str | None = None
    ) -> Call[RetryPolicy]:
        """Go back to before the last change. Undoing twice restores it.

        Needs the scope `operate:write`.
        """
        return Call(
            "undo_resolver_retry_policy",
            "POST",
            f"/api/v1/retries/policies/resolvers/{part(resolver)}/undo",
            RetryPolicy,
            idempotency_key=idempotency_key,
        )

    @operation
    def get_summary(self, *, hours: int | None = None, resolver: str | None = None) -> Call[RetrySummary]:
        """The last hours in short, of all resolvers or of one.

        Needs the scope `operate:read`.
        """
        return Call(
            "get_retry_summary",
            "GET",
            "/api/v1/retries/summary",
            RetrySummary,
            query={"hours": hours, "resolver": resolver},
        )

    @listing
    def get_timeseries(
        self, *, hours: int | None = None, resolver: str | None = None
    ) -> Listing[RetryTimeseries, HourFigures]:
        """The last hours one by one, the running one included.

        Needs the scope `operate:read`.
        """
        return Listing(
            "get_retry_timeseries",
            "GET",
            "/api/v1/retries/timeseries",
            RetryTimeseries,
            query={"hours": hours, "resolver": resolver},
        )

    @listing
    def list_by_resolver(self, *, hours: int | None = None) -> Listing[ResolverFiguresList, ResolverFigures]:
        """The last hours in short, of each resolver that had attempts.

        Needs the scope `operate:read`.
        """
        return Listing(
            "list_retries_by_resolver",
            "GET",
            "/api/v1/retries/resolvers",
            ResolverFiguresList,
            query={"hours": hours},
        )
