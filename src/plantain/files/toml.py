"""TOML that somebody else may have written: of bounded size, and every way in which it can be broken is one line."""

from __future__ import annotations

import tomllib
from pathlib import Path

from plantain.files.opening import MAX_TEXT_BYTES, read_regular
from plantain.records import InputError

DEEPEST = 64

FAULTS = (ValueError, RecursionError, MemoryError)
"""Of tomllib: no TOML, no UTF-8, a number of more than 4,300 digits; nested deeper than Python reads."""


def read_toml_table(path: Path) -> dict[str, object]:
    """A TOML file as it is.

    Raises:
        InputError: it cannot be read, or is no TOML.
    """
    data = read_regular(path, str(path), MAX_TEXT_BYTES)
    try:
        table = tomllib.loads(data.decode())
        _check(table, path)
        return table
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    except RecursionError:
        raise InputError(f"{path}: is not valid TOML: nested too deep") from None
    except InputError:
        raise
    except FAULTS as error:
        raise InputError(f"{path}: is not valid TOML: {' '.join(str(error).split())[:200]}") from None


def _check(value: object, path: Path, depth: int = 0) -> None:
    """Refuses what nobody writes by hand, and others could not take: deep nesting, numbers beyond 64 bits."""
    if depth > DEEPEST:
        raise InputError(f"{path}: is not valid TOML: nested too deep")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise InputError(f"{path}: is not valid TOML: a whole number of more than 64 bits")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check(inner, path, depth + 1)
