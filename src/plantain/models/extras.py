"""Checks of optional dependencies, with the line to install a missing one."""

from __future__ import annotations

from importlib.util import find_spec

from plantain.files.installing import install_line
from plantain.records import InputError


def has_module(module: str) -> bool:
    """Return True if a module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def require_extra(name: str, extra: str, *modules: str) -> None:
    """Raise InputError with the line to install if one of these modules is missing; import none."""
    for module in modules:
        if not has_module(module):
            raise InputError(f"{name} needs the package {module}: {install_line(extra)}")
