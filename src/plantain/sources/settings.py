"""Choices that only one kind of source knows, as `--set name=value`, checked by name and by value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plantain.records import InputError
from plantain.records.suggestions import suggest


@dataclass(frozen=True, slots=True)
class Setting:
    """One choice.

    Attributes:
        default: its value when nothing is said.
        allowed: every value, or empty for free text.
    """

    default: str
    allowed: tuple[str, ...] = ()


def parse_settings(words: Iterable[str], option: str = "--set") -> dict[str, str]:
    """Reads `name=value` words of an option.

    Raises:
        InputError: a word without "=", or a name given twice.
    """
    settings: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} {word!r}: expected name=value")
        if name.strip() in settings:
            raise InputError(f"{option} {name.strip()}: given twice")
        settings[name.strip()] = value.strip()
    return settings


def resolve_settings(kind: str, known: Mapping[str, Setting], given: Mapping[str, str]) -> dict[str, str]:
    """Every setting of a kind with its value, given or default.

    Raises:
        InputError: an unknown name or value; the message names those that exist.
    """
    for name, value in given.items():
        if name not in known:
            names: Sequence[str] = sorted(known)
            raise InputError(
                f"--set {name}: {kind} has no such setting; {suggest(name, names) if names else 'it has none'}"
            )
        allowed = known[name].allowed
        if allowed and value not in allowed:
            raise InputError(f"--set {name}={value}: {suggest(value, allowed)}")
    return {name: given.get(name, setting.default) for name, setting in known.items()}


def whole_number(name: str, value: str, least: int = 0) -> int:
    """A setting that counts. Raises InputError where it is no whole number of at least `least`."""
    if not (value.isascii() and value.isdigit()) or len(value) > 9 or int(value) < least:
        raise InputError(f"--set {name}={value}: a whole number of at least {least} is needed")
    return int(value)
