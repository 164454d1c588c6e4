"""All operations of /api/v1. One that is not here does not exist: neither as a route nor in the document."""

from __future__ import annotations

from effaced.api.audit import routes as audit
from effaced.api.breakers import routes as breakers
from effaced.api.datamap import routes as datamap
from effaced.api.dead_letters import cleanup
from effaced.api.dead_letters import routes as dead_letters
from effaced.api.decisions import routes as decisions
from effaced.api.keys import routes as keys
from effaced.api.messages import routes as messages
from effaced.api.operations.declare import Operation, Routes
from effaced.api.redrives import routes as redrives
from effaced.api.requests import routes as requests
from effaced.api.resolvers import routes as resolvers
from effaced.api.retentions import routes as retentions
from effaced.api.retries import routes as retries
from effaced.api.subjects import routes as subjects

RESOURCES: tuple[Routes, ...] = (
    requests.routes,
    decisions.routes,
    retries.of_requests,
    subjects.routes,
    dead_letters.routes,
    cleanup.routes,
    redrives.routes,
    retentions.routes,
    resolvers.routes,
    breakers.routes,
    retries.routes,
    datamap.routes,
    messages.routes,
    audit.routes,
    keys.routes,
)
OPERATIONS: tuple[Operation, ...] = tuple(each for resource in RESOURCES for each in resource)
