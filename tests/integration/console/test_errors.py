"""Error pages: finished, helpful, and silent about the inside."""

from __future__ import annotations

import json

import pytest
from flask import Flask

from effaced.app import create_app
from effaced.core.errors import ConfigurationError, Unavailable
from effaced.runtime import Runtime
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, Visitor


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/console/nothing-here", 404, "Page not found"),
        ("/nothing-here", 404, "Page not found"),
        ("/console/requests/ER-2222-2222", 404, "Page not found"),
        ("/console/theme", 405, "Not allowed"),
        ("/console/requests?status=lost", 422, "expected open, closed, all, received"),
        ("/console/requests?after=xyz", 422, "after: is not the start of a page"),
        ("/console/abandoned?domain=mars", 422, "expected external_call, verification"),
        (
            "/console/verified?outcome=maybe",
            422,
            "still_present, unverifiable, attested",
        ),
        ("/console/requests?subject=forged", 422, "Search again"),
    ],
)
def test_a_wrong_address_is_answered_with_a_page_that_helps(
    ada: Visitor, path: str, status: int, words: str
) -> None:
    answer = ada.get(path)
    assert answer.status_code == status
    assert words in answer.text
    assert "To the overview" in answer.text


def test_too_large_a_form_is_refused(ada: Visitor) -> None:
    answer = ada.post("/console/theme", {"theme": "x" * 400_000})
    assert answer.status_code == 413
    assert "Too large" in answer.text


def break_console(app: Flask, error: Exception) -> None:
    def raising() -> str:
        raise error

    app.view_functions["console.overview.index"] = raising


def test_an_unexpected_error_shows_its_id_and_nothing_of_the_inside(app: Flask, ada: Visitor) -> None:
    break_console(app, RuntimeError("password=hunter2 at line 7"))
    answer = ada.get("/console/", headers={"X-Trace-Id": "look-me-up"})
    assert answer.status_code == 500
    assert "look-me-up" in answer.text
    assert "hunter2" not in answer.text
    assert "RuntimeError" not in answer.text


@pytest.mark.parametrize(
    "error", [Unavailable("The vault is closed."), ConfigurationError("datamap.yaml: wrong")]
)
def test_what_is_not_available_says_so(app: Flask, ada: Visitor, error: Exception) -> None:
    break_console(app, error)
    answer = ada.get("/console/")
    assert answer.status_code == 503
    assert "datamap.yaml" not in answer.text


def test_a_database_that_is_gone_is_answered_with_503(house: House, ada: Visitor) -> None:
    nowhere = house.runtime.settings.model_copy(
        update={"database_url": "postgresql://nobody@127.0.0.1:1/none"}
    )
    elsewhere = create_app(Runtime(nowhere)).test_client()
    session = ada.client.get_cookie("effaced_session")
    assert session is not None
    elsewhere.set_cookie("effaced_session", session.value)
    answer = elsewhere.get("/console/")
    assert answer.status_code == 503
    assert "The database does not answer" in answer.text
    assert "127.0.0.1" not in answer.text


def test_an_error_in_an_htmx_call_is_a_toast_and_no_page(ada: Visitor) -> None:
    answer = ada.get("/console/requests?status=lost", headers=HTMX)
    assert answer.status_code == 422
    assert answer.text == ""
    toast = json.loads(answer.headers["HX-Trigger"])["toast"]
    assert toast["tone"] == "bad"
    assert "status" in toast["text"]


def test_the_api_answers_errors_in_its_own_way(ada: Visitor) -> None:
    answer = ada.get("/api/v1/nothing-here")
    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"


@pytest.mark.parametrize("ref", ["%00", "ER-%00", "%0a"])
def test_a_name_that_no_request_can_have_is_not_found(ada: Visitor, ref: str) -> None:
    assert ada.get(f"/console/requests/{ref}").status_code == 404


@pytest.mark.parametrize("path", ["/console/audit", "/console/audit/export/csv"])
def test_an_actor_that_is_none_is_refused_before_anything_is_written(ada: Visitor, path: str) -> None:
    query: dict[str, object] = {"actor": "anna.schmidt-1980"}
    answer = ada.get(path, query_string=query) if path.endswith("audit") else ada.post(path, query)
    assert answer.status_code == 422
