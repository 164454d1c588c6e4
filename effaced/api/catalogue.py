"""All operations of /api/v1. One that is not here does not exist: neither as a route nor in the document."""

from __future__ import annotations

from effaced.api.audit import routes as audit
from effaced.api.operations.declare import Operation, Routes
from effaced.api.requests import routes as requests

RESOURCES: tuple[Routes, ...] = (requests.routes, audit.routes)
OPERATIONS: tuple[Operation, ...] = tuple(each for resource in RESOURCES for each in resource)
