"""Dead letters as programs read them: the same for the command line's `--json` and the API."""

from __future__ import annotations

from typing import Any

from effaced.core.clock import text
from effaced.deadletters.assign import LetterNote
from effaced.deadletters.context import FAILURES
from effaced.deadletters.read import DeadLetterGroup, DeadLetterLine


def plain_letter(letter: DeadLetterLine) -> dict[str, Any]:
    """One letter. Ids, words, counts and moments; nothing in it is personal."""
    return {
        "id": str(letter.id),
        "status": letter.status.value,
        "domain": letter.domain.value,
        "resolver": letter.resolver,
        "failure_type": letter.failure_type,
        "error_code": letter.error_code,
        "entry_id": _id(letter.entry_id),
        "request_id": _id(letter.request_id),
        "attempts": letter.context.get("attempts"),
        "tables": letter.context.get("tables", []),
        "failures": letter.context.get(FAILURES, []),
        "retry_count": letter.retry_count,
        "max_retries": letter.max_retries,
        "metadata": letter.marks or {},
        "recommended_action": letter.recommended_action,
        "next_action_hint": letter.next_action_hint,
        "assigned_to": _id(letter.assigned_to),
        "late": letter.late,
        "created_at": text(letter.created_at),
        "updated_at": text(letter.updated_at),
        "last_retry_at": text(letter.last_retry_at),
        "resolved_at": text(letter.resolved_at),
        "resolved_by": letter.resolved_by,
        "resolution": letter.resolution,
        "archived_at": text(letter.archived_at),
    }


def plain_group(group: DeadLetterGroup) -> dict[str, Any]:
    return {
        "domain": group.domain.value,
        "resolver": group.resolver,
        "failure_type": group.failure_type,
        "count": group.count,
        "oldest_at": text(group.oldest),
    }


def plain_note(note: LetterNote) -> dict[str, Any]:
    return {"id": str(note.id), "author": note.author, "at": text(note.at), "text": note.text}


def _id(value: object) -> str | None:
    return None if value is None else str(value)
