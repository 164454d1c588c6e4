"""The application as it is, but for its templates: every test has an app, and they would all compile them."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from flask import Flask
from jinja2 import FileSystemBytecodeCache

from effaced.app import create_app
from effaced.runtime import Runtime


@cache
def _compiled() -> FileSystemBytecodeCache:
    folder = Path(tempfile.gettempdir()) / f"effaced-templates-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    # Its keys hold the templates' source, so a changed one is compiled anew.
    return FileSystemBytecodeCache(str(folder))


def make_app(runtime: Runtime) -> Flask:
    app = create_app(runtime)
    app.jinja_env.bytecode_cache = _compiled()
    return app
