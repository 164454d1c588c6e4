"""Groups of nodes in a graph that all lead to each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def strongly_connected(ways: Mapping[Node, Iterable[Node]]) -> Iterator[list[Node]]:
    """The strongly connected components of more than one node.

    Tarjan's algorithm: all is looked at once. Without recursion, as a chain may be longer than the stack.
    """
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}  # the earliest node it is known to lead to, until its group is complete
    group: list[Node] = []
    for start in ways:
        trail = [] if start in number else [(start, iter(ways[start]))]
        while trail:
            node, onward = trail[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                group.append(node)
            for other in onward:
                if other not in number:
                    trail.append((other, iter(ways[other])))
                    break
                if other in low:
                    low[node] = min(low[node], number[other])
            else:
                trail.pop()
                if trail:
                    before = trail[-1][0]
                    low[before] = min(low[before], low[node])
                if low[node] == number[node]:
                    found = [group.pop()]
                    while found[-1] != node:
                        found.append(group.pop())
                    for each in found:
                        del low[each]
                    if len(found) > 1:
                        yield found
