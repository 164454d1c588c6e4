from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from effaced.datamap.compile.cycles import strongly_connected

WAYS = st.integers(1, 9).flatmap(
    lambda size: st.lists(st.sets(st.integers(0, size - 1)), min_size=size, max_size=size)
)


def reached(ways, start):
    seen, ahead = set(), [start]
    while ahead:
        found = set(ways[ahead.pop()]) - seen
        seen |= found
        ahead += found
    return seen


@given(WAYS)
def test_nodes_that_lead_to_each_other_are_together_and_no_others(ways):
    ways = dict(enumerate(ways))
    beyond = {node: reached(ways, node) for node in ways}
    expected = {
        frozenset({node, *(other for other in beyond[node] if node in beyond[other])}) for node in ways
    }
    found = list(strongly_connected(ways))
    assert sorted(map(sorted, found)) == sorted(sorted(group) for group in expected if len(group) > 1)


def test_a_circle_longer_than_the_stack_is_found():
    size = 5_000
    [circle] = strongly_connected({node: [(node + 1) % size] for node in range(size)})
    assert len(circle) == size
