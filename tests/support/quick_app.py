"""The application, built once: compiling its routes and templates takes longer than most tests."""

from __future__ import annotations

import copy
import os
import tempfile
from functools import cache
from pathlib import Path

from flask import Flask
from jinja2 import FileSystemBytecodeCache

from effaced.app import configure, create_app
from effaced.runtime import Runtime


def make_app(runtime: Runtime) -> Flask:
    """The application on this runtime. Routes and templates are shared with all others of this process."""
    pattern = _build(runtime)
    app = copy.copy(pattern)
    app.config = copy.copy(pattern.config)
    app.extensions = dict(pattern.extensions)
    app.view_functions = dict(pattern.view_functions)
    configure(app, runtime)
    return app


_built: list[Flask] = []


def _build(runtime: Runtime) -> Flask:
    if not _built:
        app = create_app(runtime)
        app.jinja_env.bytecode_cache = _compiled()
        _built.append(app)
    return _built[0]


@cache
def _compiled() -> FileSystemBytecodeCache:
    folder = Path(tempfile.gettempdir()) / f"effaced-templates-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    # Its keys hold the templates' source, so a changed one is compiled anew.
    return FileSystemBytecodeCache(str(folder))
