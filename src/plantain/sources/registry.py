"""The kinds of source that can be ingested: ours, and those that other packages add by entry point."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from plantain.findings import Taxonomy
from plantain.findings.taxonomy import suggest
from plantain.records import InputError
from plantain.sources.entries import Reader, SourceOptions

GROUP = "plantain.sources"
"""Entry point group: name = kind, value = "package.module:KIND", a `SourceKind`."""

BUILT_IN = {
    "folder": "plantain.sources.folder",
    "mimic-cxr": "plantain.sources.mimic_cxr",
    "brain-tumor-mri": "plantain.sources.brain_tumor_mri",
    "odir-5k": "plantain.sources.odir_5k",
    "dicom": "plantain.sources.dicom",
    "nifti": "plantain.sources.nifti",
}
"""Modules of our own kinds; each holds its `SourceKind` as `KIND`."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of source.

    Attributes:
        summary: one line for `plantain ingest --list`.
        open: makes the reader; raises InputError when path or options do not fit.
        dataset: the name of its images' dataset, where this kind reads one dataset only; "" otherwise.
        label_table: whether a person may tell labels in PATH/labels.csv, also after a first ingest.
    """

    summary: str
    open: Callable[[SourceOptions, Taxonomy], Reader]
    dataset: str = ""
    label_table: bool = False


def kinds() -> dict[str, str]:
    """Every kind by name with its summary; one that cannot be loaded says so instead."""
    summaries: dict[str, str] = {}
    for name in (*BUILT_IN, *_foreign()):
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
    if name in BUILT_IN:
        kind: object = importlib.import_module(BUILT_IN[name]).KIND
    else:
        foreign = _foreign()
        if name not in foreign:
            raise InputError(f"kind {name!r}: unknown; {suggest(name, [*BUILT_IN, *foreign])}")
        try:
            kind = foreign[name].load()
        except (ImportError, AttributeError) as error:
            raise InputError(f"kind {name!r}: {foreign[name].value} cannot be loaded ({error})") from error
    if not isinstance(kind, SourceKind):
        raise InputError(f"kind {name!r}: its entry point is not a plantain.sources.registry.SourceKind")
    return kind


def _foreign() -> dict[str, EntryPoint]:
    """Kinds of other packages, by name; ours cannot be replaced."""
    found = {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.value)}
    return {name: point for name, point in sorted(found.items()) if name not in BUILT_IN}
