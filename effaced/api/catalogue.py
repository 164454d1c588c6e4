"""All operations of /api/v1. One that is not here does not exist: neither as a route nor in the document."""

from __future__ import annotations

from effaced.api.decisions import routes as decisions
from effaced.api.keys import routes as keys
from effaced.api.operations.declare import Operation, Routes
from effaced.api.requests import routes as requests
from effaced.api.subjects import routes as subjects

RESOURCES: tuple[Routes, ...] = (requests.routes, decisions.routes, subjects.routes, keys.routes)
OPERATIONS: tuple[Operation, ...] = tuple(each for resource in RESOURCES for each in resource)
