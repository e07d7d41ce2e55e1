"""The one way in which every command makes its typer application."""

from __future__ import annotations

import typer


def application() -> typer.Typer:
    """An application without completion options, markup in help texts or dressed-up tracebacks."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
