"""Keeps the libraries' own progress bars and remarks off the terminal; we report progress and problems ourselves."""

from __future__ import annotations

import logging

OFFLINE = {
    "HF_HUB_OFFLINE": "1",  # weights are on disk, or were fetched before: nothing is looked up
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""The surroundings of a process that runs weights; read by the libraries when they are imported."""


REMARKS_OF_TORCHAO = {
    "torchao": "Failed to load ",  # each kernel that this machine has no use for, by its path
    "torch.utils._pytree": "%s is an Enum subclass and is now natively supported",
}
"""Logger -> start of its remark when diffusers imports torchao, even without quantisation."""


def _no_remark_of_torchao(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(REMARKS_OF_TORCHAO[record.name])


def quiet_libraries() -> None:
    """Disable progress bars of weights, and messages below the level of errors.

    Call it before importing a class of diffusers: that import makes torchao log.
    """
    for name in REMARKS_OF_TORCHAO:
        logging.getLogger(name).addFilter(_no_remark_of_torchao)
    import diffusers
    import transformers

    for library in (diffusers.utils.logging, transformers.logging):
        library.set_verbosity_error()
        library.disable_progress_bar()
