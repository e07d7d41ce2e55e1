"""Keeps the libraries' own progress bars and remarks off the terminal; we report progress and problems ourselves."""

from __future__ import annotations


def quiet_libraries() -> None:
    """No progress bars while weights are loaded, and no remarks below an error."""
    import diffusers
    import transformers

    for library in (diffusers.utils.logging, transformers.logging):
        library.set_verbosity_error()
        library.disable_progress_bar()
