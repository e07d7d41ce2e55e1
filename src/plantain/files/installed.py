"""What installed packages add by entry point (sources, models, metrics, rubrics, layouts); ours stand there too."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from plantain.records import InputError
from plantain.records.suggestions import suggest

BROKEN = (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError)
"""What loading an entry of a package may raise that does not fit."""


def installed(group: str) -> Mapping[str, EntryPoint]:
    """The entries of a group by name: ours, then those of other packages by name; of two by one name, ours.

    Raises:
        InputError: ours are not among them, so that plantain itself is not installed as its code says.
    """
    return _installed(group, tuple(sys.path))


def is_ours(entry: EntryPoint) -> bool:
    """Whether plantain itself registers it."""
    return entry.value.startswith("plantain.")


def entry_named(group: str, name: str, what: str, others: str = "") -> EntryPoint:
    """The entry of that name.

    Args:
        group: of the entry points.
        name: as a person wrote it.
        what: stands before a wrong name, e.g. "kind"; `others` after all that there are, e.g. ", or a file.toml".

    Raises:
        InputError: there is none; the nearest is named.
    """
    found = installed(group)
    if name not in found:
        hint = suggest(name, found, otherwise=f"there are {', '.join(found)}{others}")
        raise InputError(f"{what} {name!r}: unknown; {hint}")
    return found[name]


def load_entry(entry: EntryPoint, what: str) -> object:
    """What an entry names, imported now. Raises InputError where it cannot be."""
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
