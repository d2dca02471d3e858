"""certsvm demo."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Train, verify and compare on generated data: 100,000 documents, some ten seconds."""
    from certsvm.demo import main

    main()
