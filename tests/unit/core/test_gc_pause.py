"""Garbage is collected again, however the work ended."""

from __future__ import annotations

import gc

import pytest

from effaced.core.gc_pause import gc_paused


def test_nothing_is_collected_within_and_everything_afterwards() -> None:
    with gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_raises_leaves_it_as_it_was() -> None:
    @gc_paused()
    def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert gc.isenabled()


def test_one_within_another_ends_with_the_outer_one() -> None:
    with gc_paused():
        with gc_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_made_within_is_not_looked_at_as_soon_as_it_ends() -> None:
    collections: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        collections.append(phase)

    gc.callbacks.append(note)
    try:
        with gc_paused():
            kept = [[number] for number in range(10 * gc.get_threshold()[0])]
        assert kept
    finally:
        gc.callbacks.remove(note)
    assert collections == []


def test_what_the_application_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        with gc_paused():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
