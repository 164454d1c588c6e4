"""The description of the API, for programs."""

from __future__ import annotations

from flask import Blueprint, Response

from effaced.api.openapi.document import document

blueprint = Blueprint("openapi", __name__)


@blueprint.get("/api/v1/openapi.json")
def openapi() -> Response:
    """The OpenAPI document. Nothing in it is particular to this installation, so everybody may read it."""
    response = Response(document(), content_type="application/json")
    response.headers["Cache-Control"] = "public, max-age=300"
    return response
