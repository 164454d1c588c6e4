"""The data map over HTTP: what is known about people, and whether it fits the database."""

from __future__ import annotations

from effaced.accounts.scopes import Scope
from effaced.api.datamap import models
from effaced.api.datamap.show import show_finding, show_map
from effaced.api.operations.call import Call
from effaced.api.operations.declare import Routes
from effaced.core.errors import ConfigurationError
from effaced.datamap.check.live import check_live, differs_from_file, findings_of

routes = Routes(
    "Data map",
    "/api/v1/datamap",
    about="Which tables and columns hold data of people, and what happens to each in an erasure.",
)


@routes.get(scope=Scope.OPERATE_READ)
def get_data_map(call: Call) -> models.DataMap:
    """The data map in force."""
    return show_map(call.runtime.datamap)


@routes.get("/check", scope=Scope.OPERATE_READ)
def check_data_map(call: Call) -> models.DataMapCheck:
    """Compare the data map in force with the live database.

    The answer is 200 also where there are problems, since looking is what was asked for.
    """
    try:
        data_map = call.runtime.datamap
    except ConfigurationError as error:
        findings, datamap_hash, differs = findings_of(error), None, False
    else:
        findings, datamap_hash = check_live(call.session.connection(), data_map), data_map.hash
        differs = differs_from_file(data_map, call.runtime.settings.datamap)
    return models.DataMapCheck(
        datamap_hash=datamap_hash,
        fits=not findings.problems,
        file_differs=differs,
        problems=[show_finding(each) for each in findings.problems],
        notes=[show_finding(each) for each in findings.notes],
    )
