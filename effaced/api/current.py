"""What a view needs from its surroundings: the runtime, and the request that a path names."""

from __future__ import annotations

import re
from typing import cast
from uuid import UUID

from flask import current_app
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from effaced.accounts.tables import ApiKey
from effaced.core.errors import NotFound
from effaced.requests.tables import Request
from effaced.runtime import Runtime

_REF = re.compile(r"[A-Za-z0-9-]{1,16}")


def current_runtime() -> Runtime:
    return cast(Runtime, current_app.extensions["effaced"])


def find_request(session: Session, key: ApiKey, name: str) -> Request:
    """The request of this id or ref, if this key has sent it.

    Every route with a request in its path goes through here. That a person has asked through another key
    as well opens that key's request to nobody.
    """
    if (named := _named(name)) is not None:
        found = session.scalar(select(Request).where(named, Request.api_key_id == key.id))
        if found is not None:
            return found
    raise NotFound("This API key has sent no request with this id or ref.")


def _named(name: str) -> ColumnElement[bool] | None:
    try:
        return Request.id == UUID(name)
    except ValueError:
        # Only what looks like a ref goes to the database, which can't compare every text.
        return Request.ref == name.upper() if _REF.fullmatch(name) else None
