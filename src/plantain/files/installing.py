"""The command that installs an extra of plantain, from the index or from a clone."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

DISTRIBUTION = "plantain-med"
"""plantain's name on the package index; `plantain` alone is another project there."""


def install_line(extra: str = "") -> str:
    """Return the command: from the index, or in the folder of the clone that plantain was installed from.

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
    """Return True if pip installed a folder, by its own record (PEP 610), or plantain is not installed."""
    try:
        origin = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return origin is not None and "dir_info" in json.loads(origin)
