"""A YAML file as the tree that still knows its lines, so that a complaint can point at the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, SequenceNode
from yaml.resolver import Resolver

from effaced.core.errors import ConfigurationError, Problem

# Far more than the map of a large company has. A few lines of aliases of aliases stand for billions.
MOST_NODES = 1_000_000


def _fast_loader() -> type[Any]:
    """libyaml reads, Python builds the tree: libyaml's own way to build it ends the process if it is deep."""
    try:
        from yaml.cyaml import CParser  # type: ignore[attr-defined]
    except ImportError:  # PyYAML was built without it
        return yaml.SafeLoader

    class Loader(Composer, CParser, Resolver):
        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Composer.__init__(self)
            Resolver.__init__(self)

    return Loader


_FastLoader = _fast_loader()


def read_tree(path: Path) -> Node | None:
    """The root of one file, None if it is empty. Refuses what is not there and what is no YAML.

    The parser's exceptions quote the file, which may hold secrets; none of them goes any further.
    """
    broken: Problem | None = None
    root: Node | None = None
    try:
        root = _compose(path.read_text(encoding="utf-8"))
        if root is not None and _size(root, {}) > MOST_NODES:
            said = f"its aliases stand for more than {MOST_NODES:,} keys and values"
            broken = Problem(f"{path}:1", f"is too large: {said}")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read ({type(error).__name__}).") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: can't be read, it is not UTF-8 text.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        broken = Problem(f"{path}:{line}", f"is not valid YAML: {error.problem or error.context}")
    except (yaml.YAMLError, RecursionError):
        broken = Problem(f"{path}:1", "is not valid YAML: it holds characters or nesting that YAML forbids")
    if broken is not None:
        raise ConfigurationError(f"{path} can't be used.", problems=[broken])
    return root


def _size(node: Node, known: dict[int, int]) -> int:
    """How many nodes there are with every alias written out. Each node is looked at once."""
    if id(node) not in known:
        known[id(node)] = MOST_NODES  # an alias that leads back to itself has no end
        below: list[Node] = []
        if isinstance(node, MappingNode):
            below = [each for pair in node.value for each in pair]
        elif isinstance(node, SequenceNode):
            below = node.value
        known[id(node)] = 1 + sum(_size(each, known) for each in below)
    return known[id(node)]


def _compose(text: str) -> Node | None:
    root: Node | None
    try:
        root = _FastLoader(text).get_single_node()
    except yaml.YAMLError:
        # Python's own says better what is wrong, and always the same.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    return root
