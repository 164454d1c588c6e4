"""Data map: what do we know about people?"""

from __future__ import annotations

from flask import Blueprint, Response, make_response, render_template, request
from markupsafe import Markup

from effaced.console.current import runtime
from effaced.console.datamap.page import unreadable, view_of
from effaced.core.errors import ConfigurationError
from effaced.datamap.show.picture import draw
from effaced.datamap.show.subset import restrict_to_tables

blueprint = Blueprint("datamap", __name__)
_LONGEST = 200


@blueprint.get("/datamap")
def index() -> Response:
    """The map in force, compared with the database as it is now; or why there is none."""
    here = runtime()
    try:
        data_map = here.datamap
    except ConfigurationError as error:
        page = render_template("console/datamap/index.html", view=unreadable(error), picture="")
        return make_response(page)
    find = request.args.get("find", "").strip()[:_LONGEST]
    with here.db.read() as session:
        view = view_of(session.connection(), data_map, here.settings.datamap, find)
    drawn = restrict_to_tables(data_map, list(view.found)) if find else data_map
    # Built from escaped texts by an XML library; there is nothing in it that a page would carry out.
    picture = Markup(draw(drawn, standalone=False)) if drawn.tables else ""  # noqa: S704
    return make_response(render_template("console/datamap/index.html", view=view, picture=picture))


@blueprint.get("/datamap/picture")
def download() -> Response:
    """The picture as a file, with its colours in it."""
    data_map = runtime().datamap
    response = make_response(draw(data_map))
    response.mimetype = "image/svg+xml"
    response.headers["Content-Disposition"] = f'attachment; filename="datamap-{data_map.hash[:12]}.svg"'
    return response
