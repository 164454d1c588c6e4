"""All operations of /api/v1. One that is not here does not exist: neither as a route nor in the document."""

from __future__ import annotations

from effaced.api.messages import routes as messages
from effaced.api.operations.declare import Operation, Routes
from effaced.api.requests import routes as requests

RESOURCES: tuple[Routes, ...] = (requests.routes, messages.routes)
OPERATIONS: tuple[Operation, ...] = tuple(each for resource in RESOURCES for each in resource)
