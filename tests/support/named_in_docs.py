"""The dotted names in the documents' prose, and what they name in the code."""

from __future__ import annotations

import importlib
import inspect
import re

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_DOTTED = re.compile(r"[a-z_]+(\.[A-Za-z_]\w*)+(\(\))?")
_FILE = re.compile(r"\.(py|md|yaml|toml|db|ini|lock|svg|png)$")


def without_examples(text: str) -> str:
    """A page without its code blocks: what stands in them is an example."""
    return _FENCE.sub("", text)


def dotted_names(text: str) -> list[str]:
    """`requests.execute.Executor.attempt` and the like, in the page's order; without names of files."""
    found = (each for each in _CODE.findall(without_examples(text)) if _DOTTED.fullmatch(each))
    return list(dict.fromkeys(each.removesuffix("()") for each in found if not _FILE.search(each)))


def resolve(dotted: str) -> tuple[str, str, object] | None:
    """The module, the rest of the name and the object that a name below `effaced` means."""
    parts = dotted.split(".")
    for size in range(len(parts), 0, -1):
        module = ".".join(["effaced", *parts[:size]])
        try:
            found: object = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            # A pydantic model keeps its fields out of its class.
            fields = getattr(found, "__annotations__", {})
            found = getattr(found, part, fields.get(part))
        return None if found is None else (module, ".".join(parts[size:]), found)
    return None


def was_called(dotted: str, calls: set[str]) -> bool:
    """Whether the function was called, or of a class any method of its own."""
    resolved = resolve(dotted)
    assert resolved is not None, f"{dotted} does not exist"
    module, name, found = resolved
    if inspect.isclass(found):
        return any(each.startswith(f"{module}:{name}.") for each in calls)
    function = inspect.unwrap(found)  # type: ignore[arg-type]
    return f"{function.__module__}:{function.__qualname__}" in calls
