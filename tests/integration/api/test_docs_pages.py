"""The pages about the API: open to everybody, under a strict policy, and where errors link to."""

from __future__ import annotations

from typing import Any

import pytest

from effaced.app import CSP

Api = Any


def test_what_an_error_links_to_is_there(api: Api) -> None:
    for path, token in (
        ("/api/v1/requests", "no"),
        ("/api/v1/nothing", None),
        ("/api/v1/requests?x=1", None),
    ):
        page, _, anchor = api.get(path, token=token).get_json()["documentation"].partition("#")
        assert f'id="{anchor}"' in api.app.test_client().get(page).text


@pytest.mark.parametrize("path", ["/api/v1/docs", "/api/v1/docs/errors", "/api/v1/openapi.json"])
def test_everybody_may_read_them(api: Api, path: str) -> None:
    answer = api.app.test_client().get(path)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "public, max-age=300")
    assert "Set-Cookie" not in answer.headers


def test_the_policy_is_that_of_all_pages_but_for_the_icons_of_swagger_ui(api: Api) -> None:
    client = api.app.test_client()
    assert client.get("/api/v1/docs/errors").headers["Content-Security-Policy"] == CSP
    policy = client.get("/api/v1/docs").headers["Content-Security-Policy"]
    assert policy == CSP.replace("img-src 'self'", "img-src 'self' data:")


@pytest.mark.parametrize("path", ["/api/v1/docs", "/api/v1/docs/errors"])
def test_nothing_on_them_is_inline(api: Api, path: str) -> None:
    page = api.app.test_client().get(path).text
    assert "style=" not in page
    assert "<script>" not in page
