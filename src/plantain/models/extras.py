"""Optional dependencies: a missing one is a line that says what to install."""

from __future__ import annotations

from importlib.util import find_spec

from plantain.files.installing import install_line
from plantain.records import InputError


def has_module(module: str) -> bool:
    """True when a module can be imported; does not import it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def require_extra(name: str, extra: str, *modules: str) -> None:
    """Makes sure that the packages that a model needs are there, without importing them.

    Raises:
        InputError: one is not; the line says what to install.
    """
    for module in modules:
        if not has_module(module):
            raise InputError(f"{name} needs the package {module}: {install_line(extra)}")
