"""Installed packages: entry points of packages (sources, models, metrics, rubrics, layouts), and plantain's extras."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec

from plantain.records import InputError
from plantain.records.messages import suggest

BROKEN = (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError)
"""Errors of loading an entry of a package that does not fit."""


def installed(group: str) -> Mapping[str, EntryPoint]:
    """Return a group's entry points by name, plantain's first; of two with one name, plantain's is returned.

    Raises:
        InputError: plantain's entry points are not registered, as the installation is older than the code.
    """
    return _installed(group, tuple(sys.path))


def is_ours(entry: EntryPoint) -> bool:
    """Return True if an entry point is registered by plantain, not by a plug-in."""
    return entry.value.startswith("plantain.")


def entry_named(group: str, name: str, what: str, others: str = "") -> EntryPoint:
    """Return the entry of that name.

    Args:
        group: name of the group.
        name: name given by the user.
        what: kind of entry in the message, e.g. "kind".
        others: end of the list of allowed names, e.g. ", or a file.toml".

    Raises:
        InputError: the name is unknown; the nearest is suggested.
    """
    found = installed(group)
    if name not in found:
        hint = suggest(name, found, otherwise=f"there are {', '.join(found)}{others}")
        raise InputError(f"{what} {name!r}: unknown; {hint}")
    return found[name]


def load_entry(entry: EntryPoint, what: str) -> object:
    """Import and return the object that an entry names. Raise InputError if that fails."""
    try:
        return entry.load()
    except BROKEN as error:
        raise InputError(f"{what} {entry.name!r}: {entry.value} cannot be loaded ({error})") from error


@cache
def _installed(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in sorted(
        entry_points(group=group), key=lambda entry: (not is_ours(entry), entry.name, entry.value)
    ):
        found.setdefault(entry.name, entry)
    if not any(map(is_ours, found.values())):
        raise InputError(
            f"plantain's own {group} are not registered: its code is newer than its installation; "
            "run its pip install again"
        )
    return found


DISTRIBUTION = "plantain-med"
"""plantain's name on the package index; another project has the name `plantain` there."""


def install_line(extra: str = "") -> str:
    """Return the pip command that installs plantain, from the index or in the folder of its clone.

    Args:
        extra: name of an extra, e.g. "release"; "" for plantain without extras.

    Example:
        >>> install_line("release").endswith("[release]'")
        True
    """
    where = "." if _from_a_clone() else DISTRIBUTION
    named = f"'{where}[{extra}]'" if extra else where
    return f"in plantain's clone: pip install -e {named}" if where == "." else f"pip install {named}"


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
    """Check, without importing, that modules are installed. Raise InputError with the command to install `extra`."""
    for module in modules:
        if not has_module(module):
            raise InputError(f"{name} needs the package {module}: {install_line(extra)}")
