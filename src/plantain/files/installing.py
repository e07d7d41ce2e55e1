"""Checks of optional dependencies, and the line that installs an extra of plantain."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

from plantain.records import InputError

DISTRIBUTION = "plantain-med"
"""plantain's name on the package index; another project has the name `plantain` there."""


def install_line(extra: str = "") -> str:
    """Return the pip command that installs plantain: from the index, or in the folder of its clone.

    Args:
        extra: of `pyproject.toml`, e.g. "release"; "" for plantain without extras.

    Example:
        >>> install_line("release") in ("pip install -e '.[release]'", "pip install 'plantain-med[release]'")
        True
    """
    where = "." if _from_a_clone() else DISTRIBUTION
    named = f"'{where}[{extra}]'" if extra else where
    return f"pip install -e {named}" if where == "." else f"pip install {named}"


@cache
def _from_a_clone() -> bool:
    """Return True if pip installed a folder, by its record (PEP 610), or if it is not installed."""
    try:
        origin = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return origin is not None and "dir_info" in json.loads(origin)


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
