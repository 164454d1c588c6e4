"""`${NAME}` in a configuration file: the value of an environment variable, put in at start."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from effaced.core.yaml.file import Place

_VARIABLE = re.compile(r"\$\{([^}]*)\}?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STAND_IN = "unset"


def fill_in(
    value: Any, environ: Mapping[str, str], complain: Callable[[Place, str], None], place: Place = ()
) -> Any:
    """The same structure with every `${NAME}` in its text values replaced.

    What is missing is complained about by name, never by value, and stood in for, so that reading can
    go on and find the other problems.
    """
    if isinstance(value, dict):
        return {key: fill_in(each, environ, complain, (*place, str(key))) for key, each in value.items()}
    if isinstance(value, list):
        return [fill_in(each, environ, complain, (*place, index)) for index, each in enumerate(value)]
    if not isinstance(value, str):
        return value

    def look_up(match: re.Match[str]) -> str:
        name = match[1]
        if not _NAME.fullmatch(name) or not match[0].endswith("}"):
            complain(place, "expected ${NAME} with letters, digits and underscores in the name")
        elif not environ.get(name):
            complain(place, f"the environment variable {name} is not set or is empty")
        else:
            return environ[name]
        return _STAND_IN

    return _VARIABLE.sub(look_up, value)
