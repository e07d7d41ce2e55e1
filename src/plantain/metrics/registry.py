"""The metrics that can be asked for by name: ours and those of other packages, all by entry point."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint

from plantain.files.installed import installed, load_entry
from plantain.metrics.metric import NEEDS, Metric
from plantain.records import InputError

GROUP = "plantain.metrics"
"""Entry point group: name of the metric -> a subclass of `Metric`."""


def registered() -> dict[str, type[Metric]]:
    """Every metric that an installed package registers, by name; of two by one name, ours."""
    return _loaded()[0]


def unusable() -> dict[str, str]:
    """Metrics of packages that cannot be loaded, or are none, with the reason; they stop no other."""
    return _loaded()[1]


@cache
def _loaded() -> tuple[dict[str, type[Metric]], dict[str, str]]:
    found: dict[str, type[Metric]] = {}
    broken: dict[str, str] = {}
    for name, entry in installed(GROUP).items():
        try:
            found[name] = _metric(entry)
        except InputError as error:
            broken[name] = str(error)
    return found, broken


def _metric(entry: EntryPoint) -> type[Metric]:
    kind = load_entry(entry, "metric")
    where = f"metric {entry.name!r}: {entry.value}"
    if not (isinstance(kind, type) and issubclass(kind, Metric)):
        raise InputError(f"{where} is no subclass of plantain.metrics.Metric")
    if wrong := [need for need in kind.needs if need not in NEEDS]:
        raise InputError(f"{where}: needs {wrong[0]!r}; a sample has {', '.join(NEEDS)}")
    if getattr(kind, "name", "") != entry.name or not getattr(kind, "label", ""):
        raise InputError(f"{where}: its name must be that of its entry point, and it needs a label")
    return kind
