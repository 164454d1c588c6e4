"""Dead letters as programs see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from effaced.api.dead_letters import models
from effaced.deadletters.assign import DeadLetterNote
from effaced.deadletters.data import DLQCompressedEntry
from effaced.deadletters.read import DeadLetterLine


def path_of(dead_letter_id: object) -> str:
    return f"/api/v1/dead-letters/{dead_letter_id}"


def show_dead_letter(
    line: DeadLetterLine, notes: Sequence[DeadLetterNote] | None = None
) -> models.DeadLetter:
    plain = line.plain()
    absent = {
        name: plain[name] or None for name in ("code", "recommended_action", "next_action_hint", "resolution")
    }
    return models.DeadLetter.model_validate(
        {
            **plain,
            **absent,
            "failures": [_failure(each) for each in plain["failures"]],
            "notes": None if notes is None else [show_note(each) for each in notes],
        }
    )


def show_note(note: DeadLetterNote) -> models.DeadLetterNote:
    return models.DeadLetterNote(id=note.id, author=note.author, at=note.at, text=note.text)


def show_summary(entry: DLQCompressedEntry) -> models.DeadLetterSummary:
    plain = entry.plain()
    return models.DeadLetterSummary.model_validate(
        {**plain, "code": plain["code"] or None, "status": str(entry.status)}
    )


def show_totals(totals: Mapping[str, Any]) -> models.DeadLetterSummaryTotals:
    return models.DeadLetterSummaryTotals(
        summaries=totals["entries"],
        dead_letters=totals["letters"],
        by_status=totals["by_status"],
        by_domain=totals["by_domain"],
    )


def _failure(facts: Mapping[str, Any]) -> models.DeadLetterFailure:
    # Programs may have added other facts; those that every failure can have are shown.
    return models.DeadLetterFailure(
        domain=facts.get("domain"),
        error=facts.get("error"),
        code=facts.get("code"),
        attempts=facts.get("attempts"),
        status_code=facts.get("status_code"),
        tables=facts.get("tables", []),
    )
