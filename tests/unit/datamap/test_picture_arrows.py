"""The arrows in the picture of a data map."""

from __future__ import annotations

from effaced.datamap.model.data_map import Link
from effaced.datamap.show.picture_arrows import Stop, Way, draw_arrows, rails


def way(start: int, end: int, to: str = "people", kind: str = "to") -> Way:
    stops = [Stop(column, left=column * 400, right=column * 400 + 312, y=50) for column in (start, end)]
    return Way(stops[0], stops[1], Link(to, (("person", "id"),)), kind, f"{kind} {to}")


def test_only_links_over_more_than_one_column_take_a_rail() -> None:
    assert rails([way(1, 0), way(0, 0), way(0, 1)]) == {}
    assert rails([way(2, 0)]) == {("people", False): 0}


def test_links_to_one_table_share_a_rail_and_mentions_have_their_own() -> None:
    numbers = rails([way(2, 0), way(3, 0), way(3, 0, kind="mentions")])

    assert sorted(numbers.items()) == [(("people", False), 0), (("people", True), 1)]


def test_rails_that_do_not_overlap_share_a_height() -> None:
    assert set(rails([way(2, 0, "a"), way(5, 3, "b")]).values()) == {0}
    assert set(rails([way(4, 0, "a"), way(5, 3, "b")]).values()) == {0, 1}


def test_a_rail_runs_above_the_tables() -> None:
    (arrow,) = draw_arrows([way(2, 0)], {("people", False): 0}, top=102)

    assert " V92 " in arrow.path


def test_a_link_without_a_rail_of_its_own_is_only_begun() -> None:
    (arrow,) = draw_arrows([way(2, 0)], {}, top=102)

    assert arrow.path == "M800 50 h-16"
