"""TOML from others: of bounded size, and every fault is one line."""

from __future__ import annotations

import tomllib
from pathlib import Path

from plantain.files.opening import MAX_TEXT_BYTES, read_regular
from plantain.records import InputError


def read_toml_table(path: Path) -> dict[str, object]:
    """Return a TOML file as it is.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    data = read_regular(path, str(path), MAX_TEXT_BYTES)
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, nested deeper than Python reads
        raise InputError(f"{path}: is not valid TOML: {' '.join(str(error).split())[:200]}") from None
