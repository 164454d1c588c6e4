"""What the steps of a request rest on, in words: read-backs, attestations, or the vendor's word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from effaced.model import Evidence, RequestKind, Verification
from effaced.outbox.read import EntryLine
from effaced.requests.tables import Request

_EVIDENCE = (
    (Evidence.CONFIRMED, "confirmed"),
    (Evidence.ATTESTED, "attested"),
    (Evidence.VENDOR_WORD, "on the vendor's word"),
    (Evidence.NOT_VERIFIABLE, "not verifiable"),
)
_OPEN_READ_BACKS = (
    (Verification.STILL_PRESENT, "still present"),
    (Verification.DUE, "not verified yet"),
)


def verified(request: Request, entries: Iterable[EntryLine]) -> tuple[str, str]:
    """State and text of the last station. Done only if our own read-backs have confirmed every step."""
    if request.kind is RequestKind.RECTIFICATION:
        return "none", "corrections are not read back"
    needed = [entry for entry in entries if not entry.superseded]
    if not needed:
        over = request.executed_at or request.closed_at
        return ("none", "no system was called") if over else ("todo", "after the calls")
    text = evidence_words(needed) or "after the calls"
    evidence = {entry.evidence for entry in needed}
    if Evidence.NOT_VERIFIABLE in evidence or _any(needed, Verification.STILL_PRESENT):
        return "blocked", text
    if None in evidence:
        return "doing" if evidence_words(needed) else "todo", text
    if evidence == {Evidence.CONFIRMED}:
        return "done", text
    return "partly" if Evidence.CONFIRMED in evidence else "unchecked", text


def evidence_words(entries: Iterable[EntryLine]) -> str:
    """How many steps rest on what, every kind of evidence counted: "3 confirmed, 1 attested"."""
    lines = list(entries)
    counted = [
        *((sum(line.evidence is kind for line in lines), words) for kind, words in _EVIDENCE),
        *((sum(line.verification is what for line in lines), words) for what, words in _OPEN_READ_BACKS),
    ]
    return ", ".join(f"{number} {words}" for number, words in counted if number)


def next_verification(entries: Sequence[EntryLine]) -> str:
    """What has to happen next when every call has succeeded but not every one is verified."""
    stuck = sorted({entry.resolver for entry in entries if entry.unconfirmed})
    if stuck:
        return f"An officer has to verify {', '.join(stuck)} again, or attest that the data is gone there."
    due = sorted({entry.resolver for entry in entries if entry.verification is Verification.DUE})
    return f"Nothing for you yet: {', '.join(due)} will be read back again."


def _any(entries: Iterable[EntryLine], verification: Verification) -> bool:
    return any(entry.verification is verification for entry in entries)
