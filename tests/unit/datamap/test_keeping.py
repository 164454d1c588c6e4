"""Garbage is collected again, however the work ended."""

from __future__ import annotations

import gc

import pytest

from effaced.datamap.keeping import keeping_everything


def test_nothing_is_collected_within_and_everything_afterwards() -> None:
    with keeping_everything():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_raises_leaves_it_as_it_was() -> None:
    @keeping_everything()
    def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert gc.isenabled()


def test_one_within_another_ends_with_the_outer_one() -> None:
    with keeping_everything():
        with keeping_everything():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
