"""Where templates, static files and migrations are: in the package, or at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_BUNDLE = _PACKAGE / "_bundle"
_ROOT = _BUNDLE if _BUNDLE.is_dir() else _PACKAGE.parent

TEMPLATES = _ROOT / "templates"
STATIC = _ROOT / "static"
MIGRATIONS = _ROOT / "migrations"
