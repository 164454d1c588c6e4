"""`effaced openapi`."""

from __future__ import annotations

import click

from effaced.api.openapi.document import document


@click.command()
def openapi() -> None:
    """Print the OpenAPI document of the HTTP API.

    It needs neither settings nor a database: nothing in it is particular to an installation.
    """
    click.echo(document(), nl=False)
