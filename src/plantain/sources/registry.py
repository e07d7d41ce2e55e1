"""The kinds of source that can be ingested: ours and those of other packages, all by entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plantain.files.installed import entry_named, installed, load_entry
from plantain.findings import Taxonomy
from plantain.records import InputError
from plantain.sources.entries import Reader, SourceOptions
from plantain.sources.settings import Setting, resolve_settings

GROUP = "plantain.sources"
"""Entry point group: name = kind, value = "package.module:KIND", a `SourceKind`."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of source.

    Attributes:
        summary: one line for `plantain ingest --list`.
        open: makes the reader; raises InputError when path or options do not fit.
        dataset: the name of its images' dataset, where this kind reads one dataset only; "" otherwise.
        label_table: whether a person may tell labels in PATH/labels.csv, also after a first ingest.
        settings: choices that this kind knows, `--set name=value`; any other name or value is refused.
    """

    summary: str
    open: Callable[[SourceOptions, Taxonomy], Reader]
    dataset: str = ""
    label_table: bool = False
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def reader(self, name: str, options: SourceOptions, taxonomy: Taxonomy) -> Reader:
        """The reader of a source of this kind, which is called `name`.

        Raises:
            InputError: path, options or settings do not fit; of an unknown setting the message suggests the nearest.
        """
        resolve_settings(name, self.settings, options.settings)
        return self.open(options, taxonomy)


def kinds() -> dict[str, str]:
    """Every kind by name with its summary; one that cannot be loaded says so instead."""
    summaries: dict[str, str] = {}
    for name in installed(GROUP):
        try:
            summaries[name] = load(name).summary
        except InputError as error:
            summaries[name] = f"unusable: {error}"
    return summaries


def load(name: str) -> SourceKind:
    """The kind of that name.

    Raises:
        InputError: there is none, the message suggests the nearest; or its package cannot be imported.
    """
    kind = load_entry(entry_named(GROUP, name, "kind"), "kind")
    if not isinstance(kind, SourceKind):
        raise InputError(f"kind {name!r}: its entry point is not a plantain.sources.registry.SourceKind")
    return kind
