"""Keeps the libraries' own progress bars and remarks off the terminal; we report progress and problems ourselves."""

from __future__ import annotations

OFFLINE = {
    "HF_HUB_OFFLINE": "1",  # weights are on disk, or were fetched before: nothing is looked up
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""The surroundings of a process that runs weights; read by the libraries when they are imported."""


def quiet_libraries() -> None:
    """No progress bars while weights are loaded, and no remarks below an error."""
    import diffusers
    import transformers

    for library in (diffusers.utils.logging, transformers.logging):
        library.set_verbosity_error()
        library.disable_progress_bar()
