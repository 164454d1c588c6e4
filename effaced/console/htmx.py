"""One URL, two renderings. All that the console knows of htmx-flask and htmx's headers is here."""

from __future__ import annotations

import json
from typing import Any, cast

from flask import Flask, Response, flash, make_response, redirect, render_template, request
from htmx_flask import Htmx
from werkzeug.wrappers import Response as BaseResponse


def register(app: Flask) -> None:
    Htmx(app)
    app.after_request(_vary)


def wants_fragment() -> bool:
    """Whether this call wants a part of the page; boosted and history calls want all of it."""
    htmx = cast(Any, request).htmx
    return bool(htmx and not htmx.boosted and not htmx.history_restore_request)


def render(full: str, fragment: str, status: int = 200, /, **context: Any) -> Response:
    """The page, or the fragment that it includes."""
    return make_response(render_template(fragment if wants_fragment() else full, **context), status)


def go_to(url: str, *, htmx_status: int = 204) -> BaseResponse:
    """Another page, for a browser with and without htmx."""
    if not wants_fragment():
        return redirect(url, 303)
    response = make_response("", htmx_status)
    response.headers["HX-Redirect"] = url
    return response


def say(text: str, *, tone: str = "good", on: Response | None = None) -> None:
    """Tell the officer: as a toast on a fragment, else as a message on the next full page."""
    if on is None or not wants_fragment():
        flash(text, tone)
        return
    # json.dumps escapes what a header can't hold.
    on.headers["HX-Trigger"] = json.dumps({"toast": {"text": text, "tone": tone}})


def instead(response: Response, *, target: str, swap: str = "outerHTML") -> Response:
    """Put the fragment somewhere else than the form asked. (htmx-flask's own check of the swap is wrong.)"""
    response.headers["HX-Retarget"] = target
    response.headers["HX-Reswap"] = swap
    return response


def _vary(response: Response) -> Response:
    if request.path.startswith("/console/"):
        response.vary.add("HX-Request")
    return response
