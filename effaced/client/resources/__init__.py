"""All resources of the API.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from typing import Generic

from effaced.client.resources.requests import RequestsApi
from effaced.client.runners import M


class Resources(Generic[M]):
    """The resources of a client, by their names."""

    def __init__(self, runner: M) -> None:
        self.requests = RequestsApi(runner)
