"""What a view needs from its surroundings: the runtime."""

from __future__ import annotations

from typing import cast

from flask import current_app

from effaced.runtime import Runtime


def current_runtime() -> Runtime:
    return cast(Runtime, current_app.extensions["effaced"])
