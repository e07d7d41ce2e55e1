"""Optional dependencies: a missing one is a line that says what to install."""

from __future__ import annotations

from importlib.util import find_spec

from plantain.records import InputError


def has_module(module: str) -> bool:
    """True when a module can be imported; does not import it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def require_extra(name: str, extra: str, module: str) -> None:
    """Makes sure that a model's SDK is there, without importing it.

    Raises:
        InputError: it is not; the line says what to install.
    """
    if not has_module(module):
        raise InputError(f"{name} needs the package {module}: pip install -e '.[{extra}]'")
