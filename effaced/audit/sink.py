"""Where events go. The default is the trail in the same database, so that change and event commit together.

A sink of the application's own gets every event of the sessions it belongs to, whatever part of effaced the
event comes from: `append` is the only way to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.append import SINK, AuditSink, Record, append_to_trail
from effaced.core.db.pipeline import NO_PIPELINE

__all__ = ["AuditSink", "DatabaseAuditSink", "events_to", "with_sink"]


class DatabaseAuditSink:
    """The trail of effaced, in the session's own database."""

    only_writes = True
    """Whether `append` looks at no result of its statements, so that they may travel with others. A subclass
    with an `append` of its own has to say so again."""

    def __init_subclass__(cls) -> None:
        if "append" in vars(cls) and "only_writes" not in vars(cls):
            cls.only_writes = False

    def append(self, session: Session, records: Sequence[Record]) -> None:
        append_to_trail(session, records)


def with_sink(sessions: sessionmaker[Session], sink: AuditSink) -> sessionmaker[Session]:
    """Sessions like these whose events go to this sink."""
    info = sessions.kw.get("info") or {}
    if info.get(SINK) is sink:
        return sessions
    return sessionmaker(class_=sessions.class_, **(sessions.kw | {"info": {**info, **_info(sink)}}))


@contextmanager
def events_to(session: Session, sink: AuditSink) -> Iterator[None]:
    """Have a session of the caller's send its events to this sink for the length of the block."""
    given = _info(sink)
    before = {name: session.info.get(name) for name in given}
    session.info.update(given)
    try:
        yield
    finally:
        session.info.update(before)


def _info(sink: AuditSink) -> dict[str, object]:
    """The session's settings for a sink. One that reads results of its statements can't use a pipeline."""
    return {SINK: sink, NO_PIPELINE: not getattr(sink, "only_writes", False)}
