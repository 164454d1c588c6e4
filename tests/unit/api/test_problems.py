from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest
from flask import Blueprint, Flask, abort
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.test import TestResponse

from effaced.api.operations import problems
from effaced.core.errors import (
    ConfigurationError,
    Conflict,
    EffacedError,
    NotFound,
    Problem,
    Refused,
    Unavailable,
)

SECRET = "ada@example.org"


def ask(failing: Callable[[], object], path: str = "/api/thing", method: str = "GET") -> TestResponse:
    """The answer of an application whose only view fails like that; pages have HTML errors of their own."""
    app = Flask("test")
    blueprint = Blueprint("api", __name__)
    problems.register(app, blueprint)
    blueprint.add_url_rule("/api/thing", view_func=lambda: failing())
    blueprint.add_url_rule("/healthz", "health", view_func=lambda: failing())
    app.register_blueprint(blueprint)
    app.register_error_handler(404, lambda _: ("<h1>a page</h1>", 404))
    app.register_error_handler(409, lambda _: ("<h1>a page</h1>", 409))
    app.register_error_handler(EffacedError, lambda _: ("<h1>a page</h1>", 500))
    return app.test_client().open(path, method=method)


def fail(error: Exception) -> Callable[[], NoReturn]:
    def view() -> NoReturn:
        raise error

    return view


def database_error(kind: type[OperationalError | InternalError | InterfaceError]) -> Exception:
    return kind(f"INSERT {SECRET}", {"email": SECRET}, Exception(SECRET))


@pytest.mark.parametrize(
    ("error", "status", "slug"),
    [
        (Refused("no"), 422, "refused"),
        (Conflict("no"), 409, "conflict"),
        (NotFound("no"), 404, "not-found"),
        (Unavailable("no"), 503, "unavailable"),
        (ConfigurationError("no"), 503, "unavailable"),
        (database_error(OperationalError), 503, "unavailable"),
        (database_error(InternalError), 503, "unavailable"),
        (database_error(InterfaceError), 503, "unavailable"),
        (PoolTimeout("no"), 503, "unavailable"),
        (EffacedError("no"), 500, "internal"),
        (KeyError("no"), 500, "internal"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_family_of_errors_has_its_status(error: Exception, status: int, slug: str) -> None:
    answer = ask(fail(error))
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    body = answer.get_json()
    assert (body["status"], body["type"]) == (status, f"urn:effaced:problem:{slug}")
    assert body["title"]
    assert body["detail"]


def test_the_family_s_message_and_fields_are_told() -> None:
    error = Refused("Not so.", problems=[Problem("subject.id", "is missing")])
    body = ask(fail(error)).get_json()
    assert body["detail"] == "Not so."
    assert body["errors"] == [{"field": "subject.id", "code": "invalid", "message": "is missing"}]


@pytest.mark.parametrize(
    "error", [Unavailable("no"), ConfigurationError("no"), database_error(OperationalError)]
)
def test_what_may_pass_says_when_to_come_back(error: Exception) -> None:
    assert int(ask(fail(error)).headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    "error",
    [
        KeyError(SECRET),
        EffacedError(SECRET),
        ConfigurationError(f"datamap.yaml:3: {SECRET}"),
        database_error(OperationalError),
    ],
)
def test_what_is_not_for_the_caller_is_not_told(error: Exception) -> None:
    assert SECRET not in ask(fail(error)).text


@pytest.mark.parametrize("status", [400, 404, 409, 413, 415, 429])
def test_an_aborted_view_answers_with_a_problem_and_not_with_a_page(status: int) -> None:
    answer = ask(lambda: abort(status))
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v9/requests", "/healthz/x", "/readyz"])
def test_an_unknown_path_of_the_api_is_a_problem(path: str) -> None:
    answer = ask(lambda: "fine", path)
    assert (answer.status_code, answer.content_type) == (404, "application/problem+json")
    assert answer.get_json()["type"] == "urn:effaced:problem:not-found"


@pytest.mark.parametrize("path", ["/apis", "/apiary/x", "/console/x"])
def test_an_unknown_path_elsewhere_is_a_page(path: str) -> None:
    assert ask(lambda: "fine", path).text == "<h1>a page</h1>"


@pytest.mark.parametrize("path", ["/api/thing", "/healthz"])
def test_a_wrong_method_is_told_the_right_ones(path: str) -> None:
    answer = ask(lambda: "fine", path, "POST")
    assert (answer.status_code, answer.content_type) == (405, "application/problem+json")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
