"""The request that a path names, if its caller may see it."""

from __future__ import annotations

import re
from uuid import UUID

from sqlalchemy import ColumnElement, select

from effaced.api.operations.call import Call
from effaced.core.errors import NotFound
from effaced.requests.tables import Request, SandboxRequest

_REF = re.compile(r"[A-Za-z0-9-]{1,16}")


def find_request(call: Call, name: str) -> Request:
    """The request of this id or ref.

    Every route with a request in its path goes through here. A key that acts for an officer reaches all of
    them, any other one what it has sent: that a person has asked through another key as well opens that key's
    request to nobody.
    """
    named = id_or_ref(Request, name)
    if named is not None:
        query = select(Request).where(named)
        if not call.caller.sees_all:
            query = query.where(Request.api_key_id == call.caller.key.id)
        if (found := call.session.scalar(query)) is not None:
            return found
    if call.caller.sees_all:
        raise NotFound("There is no request with this id or ref.")
    raise NotFound("This API key has sent no request with this id or ref.")


def id_or_ref(table: type[Request | SandboxRequest], name: str) -> ColumnElement[bool] | None:
    """The condition for what a path names; None if nothing can have that name."""
    try:
        return table.id == UUID(name)
    except ValueError:
        # Only what looks like a ref goes to the database, which can't compare every text.
        return table.ref == name.upper() if _REF.fullmatch(name) else None
