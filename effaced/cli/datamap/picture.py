"""`effaced datamap picture`: the map for those who have to agree to it."""

from __future__ import annotations

from pathlib import Path

import click

from effaced.cli.datamap.common import map_option, write_out
from effaced.core.config import Settings
from effaced.datamap.load.file import load_map
from effaced.datamap.show.picture import draw


@click.command("picture")
@map_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="The file to write to; standard output without it.",
)
@click.pass_obj
def picture(settings: Settings, path: Path | None, output: Path | None) -> None:
    """Draw the data map as SVG: tables, links and what happens to each column. Needs no database."""
    svg = draw(load_map(path or settings.datamap))
    if output is None:
        click.echo(svg)
        return
    write_out(output, svg + "\n")
    click.echo(f"{output} is written.")
