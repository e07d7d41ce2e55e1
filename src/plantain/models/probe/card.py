"""A probe's card: what it was measured by, and whether it may take part in verdicts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Area:
    """An area under the ROC curve with its 95 % interval over groups.

    Attributes:
        auc: in [0, 1]; None where all pictures have the finding, or none has.
        low, high: None where nothing can be said.
        n: pictures; `groups` of them are independent.
    """

    auc: float | None
    low: float | None
    high: float | None
    n: int
    groups: int


@dataclass(frozen=True, slots=True)
class ControlRate:
    """How often a probe was right about pictures that were made so that the right answer is known.

    Attributes:
        rate: in [0, 1]; None of none.
        low, high: 95 % interval.
        n: pictures.
        least: what the gate asks of `rate`; None where it asks nothing.
    """

    rate: float | None
    low: float | None
    high: float | None
    n: int
    least: float | None = None


@dataclass(frozen=True, slots=True)
class ProbeCard:
    """What is known of a probe.

    Attributes:
        findings, modality: what it tells, of which pictures.
        width: of its network.
        temperatures, shifts: per finding; a calibrated logit is raw / temperature - shift.
        margins: per finding, by how much a calibrated logit moves when nothing of meaning happens to a picture.
        patients: "known", or "unknown" where groups are near duplicates alone.
        learned_from: pictures and groups by part: "training", "calibration", "held out".
        catalogue: digest of what it learned from.
        seed, epochs: of the training.
        held_out: by finding.
        ece: expected calibration error over all findings, in [0, 1].
        controls: by name, then by finding ("all" where it is about none).
        areas_under: AUC by finding after an exchange that carries no meaning, by its name.
        why_not: why it may not judge, by the gate of the day it was written; whoever opens the probe asks again.
        seal: of this card and its weights, see `folder.seal_of`; "" of cards that were written without one.
    """

    findings: tuple[str, ...]
    modality: str
    width: int
    temperatures: tuple[float, ...]
    shifts: tuple[float, ...]
    margins: tuple[float, ...]
    patients: str
    learned_from: Mapping[str, Mapping[str, int]]
    catalogue: str
    seed: int
    epochs: int
    held_out: Mapping[str, Area]
    ece: float
    controls: Mapping[str, Mapping[str, ControlRate]]
    areas_under: Mapping[str, Mapping[str, Area]]
    why_not: tuple[str, ...] = ()
    seal: str = ""

    @property
    def passes(self) -> bool:
        """Whether the probe could take part in verdicts by what the card says of itself."""
        return not self.why_not


@cache
def needs() -> Mapping[str, Mapping[str, float]]:
    """What a probe's card must show, by kind and name; the reasons stand in the file."""
    text = resources.files("plantain.models.probe").joinpath("gate.toml").read_text("utf-8")
    return {
        kind: {
            name: float(value["least"] if "least" in value else value["most"]) for name, value in rows.items()
        }
        for kind, rows in tomllib.loads(text).items()
    }


def why_not(
    findings: Sequence[str],
    held_out: Mapping[str, Area],
    ece: float,
    controls: Mapping[str, Mapping[str, ControlRate]],
    areas_under: Mapping[str, Mapping[str, Area]],
) -> tuple[str, ...]:
    """What figures lack to pass, one line each; a figure that is not there is lacking."""
    found = []
    asked = needs()
    for what, least in {"held-out pictures": asked["area"]["held out"], **asked["exchanged"]}.items():
        areas = held_out if what == "held-out pictures" else areas_under.get(what, {})
        for name in findings:
            area = areas[name].auc if name in areas else None
            if area is None or not least <= area <= 1:
                found.append(f"{name}: AUC {_in_words(area, least)} with {what}, below {least:.2f}")
    most = asked["calibration"]["ece"]
    if not 0 <= ece <= most:
        found.append(f"expected calibration error {_in_words(ece, most)}, above {most:.2f}")
    for what, least in asked["control"].items():
        for name in findings:
            one = controls.get(what, {}).get(name)
            if one is None or one.rate is None or not least <= one.rate <= 1:
                rate, n = (None, 0) if one is None else (one.rate, one.n)
                found.append(f"{name}: {_in_words(rate, least)} right of {n} with {what}, below {least:.2f}")
    return tuple(found)


def _in_words(value: float | None, bar: float) -> str:
    """Three decimals, and more where the value would read like the bar that it misses."""
    if value is None:
        return "unknown"
    return next((text for digits in range(3, 9) if float(text := f"{value:.{digits}f}") != bar), f"{value}")
