"""The job in Redis, read as what a stranger may have written.

Whoever can write to Redis could have RQ import any function, unpickle any bytes, run callbacks and call
webhooks. So a job of ours is two short texts, the name of one of two functions and a resolver's name, and
nothing else of RQ's job is ever read back. Whatever does not look like that is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from redis import Redis
from redis.exceptions import ResponseError
from rq import Queue
from rq.exceptions import DuplicateJobError, NoSuchJobError
from rq.job import Job, JobStatus
from rq.scripts import save_unique_job

from effaced.core.log import get_logger

_log = get_logger(__name__)

DRAIN: Final = "drain"
DELIVER: Final = "deliver"
QUEUE: Final = "doorbell"
# A job that nobody takes for so long is forgotten; the sweep rings again for what is due.
WAIT_SECONDS: Final = 3_600

_JOB_ID = re.compile(rb"(?:(?:drain|sweep)-[0-9a-f]{16}|deliver)-[0-9]{1,12}")
_RESOLVER_BYTES = 1_024  # the outbox keeps names of up to 255 characters

# Reads a job without ever answering with more than its two texts may be long, and gives its key a deadline:
# when the worker dies, its id is free again by itself.
_TAKE = """
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return false end
if kind ~= 'hash' or redis.call('HSTRLEN', KEYS[1], 'function') > 16
        or redis.call('HSTRLEN', KEYS[1], 'resolver') > tonumber(ARGV[1]) then
    redis.call('UNLINK', KEYS[1])
    return {}
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('HMGET', KEYS[1], 'function', 'resolver')
"""
# The same for the list: a thousand ids, none longer than ours are.
_WAITING = """
local found = {}
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, 999)) do
    if #id <= 64 then found[#found + 1] = id end
end
return found
"""


class MalformedJob(NoSuchJobError):
    """Not a job that effaced has written."""


class DoorbellJob(Job):
    """Says that a resolver has work, or that messages wait. Carries nothing else, in either direction."""

    redis_job_namespace_prefix = "effaced:job:"
    function: str = DRAIN
    resolver: str = ""

    @classmethod
    def new(cls, job_id: str, function: str, resolver: str, connection: Redis) -> DoorbellJob:
        job = cls(id=job_id, connection=connection)
        job.function, job.resolver, job.ttl = function, resolver, WAIT_SECONDS
        return job

    @classmethod
    def take(cls, entry: bytes, connection: Redis, *, timeout: int) -> DoorbellJob:
        """The job that this entry of the queue names. NoSuchJobError if there is none (any more)."""
        if not _JOB_ID.fullmatch(entry):
            raise MalformedJob("not an id of ours")
        job = cls(id=entry.decode(), connection=connection)
        job.timeout = timeout
        job.refresh()
        return job

    def refresh(self) -> None:
        found: Any = self.connection.eval(
            _TAKE, 1, self.key, _RESOLVER_BYTES, int(self.timeout or WAIT_SECONDS) + 60
        )
        if found is None:
            raise NoSuchJobError("gone")
        self.restore(dict(zip((b"function", b"resolver"), found, strict=False)))

    def restore(self, raw_data: Mapping[bytes, bytes]) -> None:
        """Take over the two texts. MalformedJob if they are not what `to_dict` writes."""
        try:
            function = raw_data[b"function"].decode("ascii")
            resolver = raw_data[b"resolver"].decode()
        except (KeyError, AttributeError, UnicodeDecodeError):
            raise MalformedJob("a field is missing or no text") from None
        expected = {DRAIN: bool(resolver), DELIVER: not resolver}
        if not expected.get(function) or "\x00" in resolver:
            raise MalformedJob("not a function and a resolver of ours")
        self.function, self.resolver = function, resolver

    def to_dict(self, include_meta: bool = True, include_result: bool = True) -> dict[str, str]:
        return {"function": self.function, "resolver": self.resolver}

    def get_status(self, refresh: bool = True) -> JobStatus:
        """What this process knows. What Redis says about it decides nothing."""
        return self._status

    def perform(self) -> None:
        # Here and not above: whoever rings need not load the saga.
        from effaced.worker import jobs

        if self.function == DRAIN:
            jobs.drain(self.resolver)
        else:
            jobs.deliver()


class DoorbellQueue(Queue):
    """The list of job ids that wait for a worker."""

    redis_queue_namespace_prefix = "effaced:queue:"
    job_class = DoorbellJob

    def __init__(self, connection: Redis) -> None:
        super().__init__(QUEUE, connection=connection)

    def ring(self, job: DoorbellJob) -> bool:
        """Put the job at the end of the list; False if one of that id waits or runs already."""
        try:
            save_unique_job(self.connection, self.key, job)  # type: ignore[no-untyped-call]
        except DuplicateJobError:
            return False
        return True

    def waiting(self) -> list[bytes]:
        """Ids at the head of the list: enough to notice a backlog."""
        return cast(list[bytes], self.connection.eval(_WAITING, 1, self.key))

    def pop(self, wait_seconds: float | None) -> bytes | None:
        """The first id, waited for if need be. Whatever stands in the list's place is removed."""
        try:
            if wait_seconds is None:
                return cast(bytes | None, self.connection.lpop(self.key))
            found: Any = self.connection.blpop([self.key], wait_seconds)
            return found[1] if found else None
        except ResponseError:
            if self.connection.type(self.key) in (b"list", b"none"):
                raise
            _log.warning("queue_replaced")
            self.connection.unlink(self.key)
            return None

    def forget(self, job: DoorbellJob) -> None:
        """Free the job's id, so that it can be enqueued again."""
        self.connection.unlink(job.key)
