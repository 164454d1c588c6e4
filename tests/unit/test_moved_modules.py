"""Modules that the documentation used to name can still be imported, with a warning."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from effaced import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_gives_the_same_module_and_a_warning(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=old):
        assert import_module(old) is import_module(MOVED[old])
