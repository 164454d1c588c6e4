"""The description of the API: for programs as OpenAPI, for people as two pages."""

from __future__ import annotations

from flask import Blueprint, Response, make_response, render_template

from effaced.api.openapi.document import document
from effaced.api.openapi.errors import FIELD_CODES, PROBLEM_TYPES
from effaced.api.operations.problems import DOCUMENTATION

blueprint = Blueprint("openapi", __name__)
_CACHED = "public, max-age=300"
# As on every page, but for one thing: Swagger UI's style sheet has its icons in it, as data: URLs.
_DOCS_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@blueprint.get("/api/v1/openapi.json")
def openapi() -> Response:
    """The OpenAPI document. Nothing in it is particular to this installation, so everybody may read it."""
    response = Response(document(), content_type="application/json")
    response.headers["Cache-Control"] = _CACHED
    return response


@blueprint.get("/api/v1/docs")
def docs() -> Response:
    """The document for people, shown by Swagger UI. It calls the API with a key that the reader enters."""
    response = make_response(render_template("api/docs.html"))
    response.headers["Content-Security-Policy"] = _DOCS_CSP
    response.headers["Cache-Control"] = _CACHED
    return response


@blueprint.get(DOCUMENTATION)
def errors() -> Response:
    """What every error means; each error links to its place here."""
    page = render_template("api/errors.html", types=PROBLEM_TYPES, codes=FIELD_CODES)
    response = make_response(page)
    response.headers["Cache-Control"] = _CACHED
    return response
