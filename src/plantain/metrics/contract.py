"""What a metric of a benchmark is: one class that measures, and says of itself all that tables need."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, ClassVar, Protocol

from plantain.pixels.arrays import Mask, Pixels
from plantain.records import InputError, Score

GROUP = "plantain.metrics"
"""Entry point group: name of the metric -> a subclass of `OutputMetric`. Ours stand there too."""

NEEDS = ("truth", "roi")
"""What a metric can need of a sample: the real image after, the region of interest."""


class MetricSample(Protocol):
    """The pictures of one sample, each read when it is first asked for."""

    @property
    def before(self) -> Pixels:
        """The image before, uint8 (H, W, 3)."""
        ...

    @property
    def truth(self) -> Pixels | None:
        """The real image after, of the same size; None where there is none."""
        ...

    @property
    def roi(self) -> Mask | None:
        """The region of interest, bool (H, W)."""
        ...


class OutputMetric:
    """A measure of one output against its sample.

    Attributes:
        name: in the journal and on the command line.
        label, unit: for a reader; the unit is "" for a bare number.
        version: raised whenever a number could change; what another version scored is scored again.
        higher_is_better: which way is up.
        low, high: the range, where it is bounded.
        digits: after the decimal point, in tables.
        needs: out of `NEEDS`; where a sample lacks one the output is unscored, and `measure` is not called.
        column: its heading in tables; "" for its name.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    unit: ClassVar[str] = ""
    version: ClassVar[str] = "1"
    higher_is_better: ClassVar[bool] = True
    low: ClassVar[float | None] = None
    high: ClassVar[float | None] = None
    digits: ClassVar[int] = 2
    needs: ClassVar[tuple[str, ...]] = ()
    column: ClassVar[str] = ""

    def measure(self, sample: Any, output: Pixels) -> Score | tuple[Score, Mapping[str, Any]]:
        """The score of an output, with whatever a reader should know of the number.

        Args:
            sample: its `MetricSample`.
            output: uint8 (H, W, 3), of the sample's size.

        Raises:
            ValueError: an image that this cannot take; the output is then unscored with that reason.
        """
        raise NotImplementedError


@cache
def registered() -> dict[str, OutputMetric]:
    """Every metric that an installed package registers, by name; of two by one name, ours.

    Raises:
        InputError: one cannot be loaded, or is no metric.
    """
    found: dict[str, OutputMetric] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: not entry.value.startswith("plantain.")):
        if entry.name in found:
            continue
        try:
            kind = entry.load()
        except (ImportError, AttributeError) as error:
            raise InputError(f"metric {entry.name!r}: {entry.value} cannot be loaded ({error})") from error
        if not (isinstance(kind, type) and issubclass(kind, OutputMetric)):
            raise InputError(f"metric {entry.name!r}: {entry.value} is no subclass of OutputMetric")
        metric = kind()
        wrong = [need for need in metric.needs if need not in NEEDS]
        if wrong or getattr(metric, "name", "") != entry.name or not getattr(metric, "label", ""):
            why = (
                f"needs {wrong[0]!r}"
                if wrong
                else "its name must be that of its entry point, and it needs a label"
            )
            raise InputError(f"metric {entry.name!r}: {entry.value}: {why}")
        found[entry.name] = metric
    return found
