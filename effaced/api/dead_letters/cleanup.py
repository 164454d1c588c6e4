"""What happens to settled dead letters: archiving, removing them for good, and what is left of them."""

from __future__ import annotations

from effaced.accounts.scopes import Scope
from effaced.api.dead_letters import models
from effaced.api.dead_letters.models import (
    ArchiveBody,
    EvictBody,
    EvictQuery,
    PurgeBody,
    PurgeQuery,
    SummaryQuery,
    SummaryStatusBody,
)
from effaced.api.dead_letters.show import show_summary, show_totals
from effaced.api.operations.call import Call
from effaced.api.operations.declare import Routes
from effaced.api.path_id import read_path_id
from effaced.audit.notes import write_note
from effaced.core.errors import Conflict, Problem
from effaced.deadletters.archive import archive_settled, count_archivable
from effaced.deadletters.purge import count_evictable, count_purgeable, evict, purge
from effaced.deadletters.summaries import get_summary, list_summaries, set_summary_status, summary_totals

routes = Routes(
    "Dead letter clean-up",
    "/api/v1/dead-letters",
    about="Archiving and removing settled dead letters, and what is left of them.",
)


@routes.post("/archive", scope=Scope.OPERATE_WRITE)
def archive_dead_letters(call: Call, body: ArchiveBody) -> models.ArchivedDeadLetters:
    """Archive what was settled long enough ago, at most 1,000 at once."""
    archived = archive_settled(call.session, older_than=body.age, actor=call.actor)
    return models.ArchivedDeadLetters(archived=archived, left=count_archivable(call.session, body.age))


@routes.get("/purge", scope=Scope.OPERATE_READ)
def preview_purge(call: Call, query: PurgeQuery) -> models.PurgePreview:
    """How many dead letters a purge with the same age would remove."""
    days = query.older_than_days
    return models.PurgePreview(
        older_than_days=days, purgeable=count_purgeable(call.session, older_than_days=days)
    )


@routes.post("/purge", scope=Scope.OPERATE_WRITE)
def purge_dead_letters(call: Call, body: PurgeBody) -> models.PurgedDeadLetters:
    """Remove archived dead letters for good.

    409 `out_of_date` if that would not be exactly as many as were expected.
    """
    note = write_note(call.session, call.keyring, body.reason, author=call.actor)
    purged = purge(
        call.session,
        older_than_days=body.older_than_days,
        expected=body.expected,
        actor=call.actor,
        note=note,
    )
    return models.PurgedDeadLetters(purged=purged)


@routes.get("/evict", scope=Scope.OPERATE_READ)
def preview_eviction(call: Call, query: EvictQuery) -> models.EvictionPreview:
    """How many dead letters an eviction of the same count and domain would remove."""
    evictable = count_evictable(call.session, query.count, query.domain)
    return models.EvictionPreview(count=query.count, evictable=evictable)


@routes.post("/evict", scope=Scope.OPERATE_WRITE)
def evict_dead_letters(call: Call, body: EvictBody) -> models.EvictedDeadLetters:
    """Remove the oldest archived dead letters for good."""
    note = write_note(call.session, call.keyring, body.reason, author=call.actor)
    evicted = evict(
        call.session, body.count, body.domain, compress=body.compress, actor=call.actor, note=note
    )
    return models.EvictedDeadLetters(evicted=evicted)


@routes.get("/summaries", scope=Scope.OPERATE_READ)
def list_dead_letter_summaries(call: Call, query: SummaryQuery) -> models.DeadLetterSummaryPage:
    """What is left of evicted dead letters, last seen first, and totals of all summaries."""
    page = list_summaries(
        call.session, domain=query.domain, status=query.status, after=query.after, limit=query.limit
    )
    return models.DeadLetterSummaryPage(
        data=[show_summary(each) for each in page.items],
        next=page.next,
        totals=show_totals(summary_totals(call.session)),
    )


@routes.get("/summaries/<summary_id>", scope=Scope.OPERATE_READ)
def get_dead_letter_summary(call: Call, summary_id: str) -> models.DeadLetterSummary:
    """One summary."""
    return show_summary(get_summary(call.session, read_path_id(summary_id, "There is no such summary.")))


@routes.post("/summaries/<summary_id>/status", scope=Scope.OPERATE_WRITE)
def set_dead_letter_summary_status(
    call: Call, summary_id: str, body: SummaryStatusBody
) -> models.DeadLetterSummary:
    """Mark a summary as stale, so that it no longer grows, or as archived. There is no way back."""
    found_id = read_path_id(summary_id, "There is no such summary.")
    if not set_summary_status(call.session, found_id, body.status):
        status = get_summary(call.session, found_id).status
        raise Conflict(
            f"The summary is {status}; it can't become {body.status}.",
            problems=[Problem("status", f"is {status}", code="wrong_state")],
        )
    return show_summary(get_summary(call.session, found_id))
