"""docs/reference/openapi.json is the document, and the document is OpenAPI 3.1."""

from __future__ import annotations

import json
import os
from pathlib import Path

from forked import run
from openapi_spec_validator import OpenAPIV31SpecValidator
from recorded import assert_current

from effaced.api.openapi.document import document

ROOT = Path(__file__).parents[3]


def test_the_document_in_the_reference_is_current() -> None:
    assert_current(ROOT / "docs/reference/openapi.json", document())


def test_it_is_valid() -> None:
    assert list(OpenAPIV31SpecValidator(json.loads(document())).iter_errors()) == []


def test_the_command_prints_it_without_any_settings(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EFFACED_")}
    done = run("openapi", environ=environ, folder=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", document())
