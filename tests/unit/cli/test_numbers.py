"""Numbers on the command line are finite, whichever command takes them."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from effaced.cli.main import cli
from effaced.cli.numbers import Number


def options(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Parameter]]:
    """Every option of every command below this group."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from options(command, (*path, name))
        for each in command.params:
            yield f"{' '.join((*path, name))} {each.name}", each


OPTIONS = list(options(cli))


def test_every_option_that_is_no_whole_number_is_a_finite_one() -> None:
    loose = (click.types.FloatParamType, click.FloatRange)
    found = [(where, type(each.type)) for where, each in OPTIONS if isinstance(each.type, loose)]
    assert len(found) > 5
    assert [where for where, kind in found if kind is not Number] == []


@pytest.mark.parametrize("typed", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize("bounds", [(None, None), (0.0, None), (0.2, 600.0)])
def test_what_is_not_finite_is_refused(typed: str, bounds: tuple[float | None, float | None]) -> None:
    with pytest.raises(click.BadParameter):
        Number(*bounds).convert(typed, None, None)


def test_a_number_within_its_range_is_taken() -> None:
    assert Number(0.2, 600).convert("1e2", None, None) == 100
