"""The kinds of source that can be ingested, ours and those of other packages, and the settings that each kind knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from plantain.files.installed import entry_named, installed, load_entry
from plantain.findings import Taxonomy
from plantain.records import InputError
from plantain.records.messages import suggest
from plantain.sources.entries import Reader, SourceOptions

GROUP = "plantain.sources"
"""Entry point group: name = kind, value = "package.module:KIND", a `SourceKind`."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A choice that one kind of source knows: its default and all allowed values, or none for free text."""

    default: str
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of source.

    Attributes:
        summary: one line for `plantain ingest --list`.
        open: makes the reader; raises InputError if path or options do not fit.
        dataset: name of its images' dataset, if this kind reads one dataset only; "" otherwise.
        label_table: labels may come from a table PATH/labels.csv, also after a first ingest.
        settings: choices that this kind knows, `--set name=value`; any other name or value is refused.
    """

    summary: str
    open: Callable[[SourceOptions, Taxonomy], Reader]
    dataset: str = ""
    label_table: bool = False
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def reader(self, name: str, options: SourceOptions, taxonomy: Taxonomy) -> Reader:
        """Return the reader of a source of this kind. Raise InputError if path, options or settings do not fit."""
        resolve_settings(name, self.settings, options.settings)
        return self.open(options, taxonomy)


def kinds() -> dict[str, str]:
    """Return every kind by name with its summary; an unusable one with the reason."""
    summaries: dict[str, str] = {}
    for name in installed(GROUP):
        try:
            summaries[name] = load(name).summary
        except InputError as error:
            summaries[name] = f"unusable: {error}"
    return summaries


def load(name: str) -> SourceKind:
    """Return the kind of that name. Raise InputError if there is none, or its package cannot be imported."""
    kind = load_entry(entry_named(GROUP, name, "kind"), "kind")
    if not isinstance(kind, SourceKind):
        raise InputError(f"kind {name!r}: its entry point is not a plantain.sources.registry.SourceKind")
    return kind


def parse_settings(words: Iterable[str], option: str = "--set") -> dict[str, str]:
    """Read `name=value` words of an option. Raise InputError for a word without "=", or a name given twice."""
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
    """Return every setting of a kind with its value, given or default. Raise InputError for an unknown one."""
    for name, value in given.items():
        if name not in known:
            hint = suggest(name, sorted(known)) if known else "it has none"
            raise InputError(f"--set {name}: {kind} has no such setting; {hint}")
        allowed = known[name].allowed
        if allowed and value not in allowed:
            raise InputError(f"--set {name}={value}: {suggest(value, allowed)}")
    return {name: given.get(name, setting.default) for name, setting in known.items()}


def whole_number(name: str, value: str, least: int = 0) -> int:
    """Return a setting that counts. Raise InputError unless it is a whole number of at least `least`."""
    if not (value.isascii() and value.isdigit()) or len(value) > 9 or int(value) < least:
        raise InputError(f"--set {name}={value}: a whole number of at least {least} is needed")
    return int(value)
