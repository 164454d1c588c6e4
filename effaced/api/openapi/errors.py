"""Every type of problem and every code of a field, in words: what `documentation` in an error leads to."""

from __future__ import annotations

from dataclasses import dataclass

from effaced.api.operations import problems
from effaced.api.operations.codes import CODES
from effaced.api.operations.problems import Kind


@dataclass(frozen=True, slots=True)
class ProblemType:
    """When a type of problem is answered, and what its caller does about it."""

    kind: Kind
    when: str
    then: str


PROBLEM_TYPES: tuple[ProblemType, ...] = (
    ProblemType(
        problems.MALFORMED,
        "The body is empty, no JSON, or not in UTF-8. The detail says where it breaks off.",
        "Send the body as JSON.",
    ),
    ProblemType(
        problems.UNKNOWN_VERSION,
        "The header Effaced-Version names a version that this installation does not serve.",
        "Send one that the error lists, or leave the header out.",
    ),
    ProblemType(
        Kind("bad-request", 400, "Bad Request"),
        "The request is no HTTP that can be understood.",
        "Look at what your HTTP library, or a proxy, sends.",
    ),
    ProblemType(
        problems.UNAUTHENTICATED,
        "There is no API key, or one that is not known or was revoked. The answer does not say which.",
        "Send the header Authorization: Bearer and a key; effaced apikey list shows those there are.",
    ),
    ProblemType(
        problems.FORBIDDEN,
        "The API key lacks the scope, or it is a sandbox key and the operation is for live ones.",
        "Use a key with the scope that the error names. What scopes a key has is fixed when it is created.",
    ),
    ProblemType(
        problems.NOT_FOUND,
        "The path does not exist, or there is no such thing, or it is not for this key: a key with requests:*"
        " reaches only what it has sent itself.",
        "Check the id or ref, and which key has sent it.",
    ),
    ProblemType(
        problems.by_status(405),
        "The path exists, but not with this method.",
        "The header Allow lists the methods.",
    ),
    ProblemType(
        problems.GONE,
        "It was there and is no longer, such as the file of an export that has expired.",
        "Ask for a new one.",
    ),
    ProblemType(
        problems.CONFLICT,
        "The thing is in another state than the call needs, or somebody else was faster.",
        "Read it again and decide anew. If the detail says so, send the same call again.",
    ),
    ProblemType(
        problems.KEY_REUSED,
        "The Idempotency-Key was sent with another call or body before.",
        "Use a new key for a new call, and the same key only to repeat one exactly.",
    ),
    ProblemType(
        problems.TOO_LARGE,
        "The body is larger than EFFACED_MAX_BODY_BYTES.",
        "A request needs only a few bytes; look at what is being sent.",
    ),
    ProblemType(
        problems.by_status(415),
        "The body is not declared as JSON.",
        "Send the header Content-Type: application/json.",
    ),
    ProblemType(
        problems.REFUSED,
        "Something that was sent is missing, unknown or wrong, or a rule says no. errors names every field at"
        " once, each with a code; values are never repeated.",
        "Correct the fields and send the call again, under the same Idempotency-Key if you like: what was"
        " refused is not stored.",
    ),
    ProblemType(
        problems.RATE_LIMITED,
        "The key has made more calls in a minute than EFFACED_API_CALLS_PER_MINUTE.",
        "Wait as many seconds as Retry-After says. RateLimit-Remaining tells before it comes to that.",
    ),
    ProblemType(
        problems.INTERNAL,
        "An error in effaced. What the call was about may have happened or not.",
        "Repeat it with the same Idempotency-Key; give the trace_id to whoever runs effaced, for the log.",
    ),
    ProblemType(
        problems.UNAVAILABLE,
        "The database is down, busy or read-only, or the configuration has a mistake. Nothing was changed.",
        "Wait as many seconds as Retry-After says, and send the same call again.",
    ),
)

FIELD_CODES: dict[str, str] = dict(sorted(CODES.items()))
