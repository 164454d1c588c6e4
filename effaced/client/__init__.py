"""The client of the HTTP API, sync and async, and the verification of signed messages.

    from effaced.client import Client

    with Client("https://effaced.company.example", api_key) as effaced:
        request = effaced.requests.create(kind="erasure", subject={"id": "4711"})
        for each in effaced.requests.list(status="review"):
            print(each.ref, each.due_at)

It imports nothing else of effaced.
"""

from effaced.client.clients import AsyncClient, Client
from effaced.client.errors import (
    ApiError,
    ClientError,
    Conflict,
    FieldError,
    Forbidden,
    NetworkError,
    NotFound,
    RateLimited,
    Refused,
    ServerError,
    Unauthenticated,
    UnexpectedAnswer,
    WebhookRefused,
)
from effaced.client.exchange import VERSION, Retry
from effaced.client.webhooks import verify_webhook

__all__ = [
    "VERSION",
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "Conflict",
    "FieldError",
    "Forbidden",
    "NetworkError",
    "NotFound",
    "RateLimited",
    "Refused",
    "Retry",
    "ServerError",
    "Unauthenticated",
    "UnexpectedAnswer",
    "WebhookRefused",
    "verify_webhook",
]
