"""`python -m effaced`."""

from effaced.cli import main

main()
