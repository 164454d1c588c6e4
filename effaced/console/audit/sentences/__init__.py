"""The audit trail in plain words: one sentence per type of event, made from its payload."""

from __future__ import annotations

from effaced.console.audit.sentences.operations import OPERATIONS
from effaced.console.audit.sentences.requests import REQUESTS
from effaced.console.audit.sentences.sentence import Moment, Payload, Sentence
from effaced.console.audit.sentences.steps import STEPS

__all__ = ["GLOSSARY", "Sentence", "describe_event"]

GLOSSARY: dict[str, Sentence] = {**REQUESTS, **STEPS, **OPERATIONS}


def describe_event(event_type: str, payload: Payload, moment: Moment) -> tuple[Sentence, str]:
    """The sentence of an event. One whose type or payload this version does not know is named, not hidden."""
    known = GLOSSARY.get(event_type)
    if known is not None:
        try:
            return known, known.render(payload, moment)
        except (KeyError, ValueError, TypeError):
            pass
    plain = event_type.replace("_", " ").capitalize() + "."
    return Sentence("quiet", "dots", lambda _p, _m: plain), plain
