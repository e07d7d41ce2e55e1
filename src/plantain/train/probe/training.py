"""From a catalogue to a probe with its card; and a probe measured on other labelled pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.areas import calibration_error
from plantain.models.probe.card import Area, ProbeCard, why_not
from plantain.models.probe.folder import CARD, Probe, logits_of, write_probe
from plantain.models.probe.frame import Frame
from plantain.models.probe.network import ProbeNetwork
from plantain.records import InputError, derive_seed
from plantain.train.probe.controls import areas_of, control_rates, exchanged_areas
from plantain.train.probe.learning import Calibration, ProbeSchedule, calibrate, fit, where_seen
from plantain.train.probe.pictures import LabelledFrames

PARTS = ("training", "calibration", "held out")


@dataclass(frozen=True, slots=True)
class ProbeCheck:
    """A probe on pictures that it was not made from.

    Attributes:
        findings: AUC by finding.
        ece: expected calibration error over all findings.
        pictures, groups: how many.
    """

    findings: dict[str, Area]
    ece: float
    pictures: int
    groups: int


def train_probe(
    pictures: LabelledFrames,
    schedule: ProbeSchedule,
    seed: int,
    out: Path,
    advanced: Callable[[int, int, float], None] = lambda step, of, loss: None,
) -> ProbeCard:
    """Trains, calibrates and measures a probe, and writes it to a folder, whatever its card says.

    Raises:
        InputError: the folder holds something else.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not (out / CARD).is_file():
        raise InputError(f"{out}: is not an empty folder and no probe; choose another --out")
    parts = pictures.parts(seed)
    _every_part(parts, pictures)
    network = fit(parts[0], schedule, seed, advanced)
    found = calibrate(network, parts[1], seed)
    card = _carded(network, found, parts, schedule, seed)
    return write_probe(out, network, card)


def check_probe(probe: Probe, pictures: LabelledFrames) -> ProbeCheck:
    """Measures a probe on labelled pictures."""
    logits = probe.logits(pictures.frames)
    return ProbeCheck(
        areas_of(pictures, logits), _ece(logits, pictures), len(pictures), len(set(pictures.groups.tolist()))
    )


def _carded(
    network: ProbeNetwork, found: Calibration, parts: list[LabelledFrames], schedule: ProbeSchedule, seed: int
) -> ProbeCard:
    held_out = parts[2]

    def asked(frames: list[Frame] | npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        raw = logits_of(network, frames)
        return np.asarray(raw / np.array(found.temperatures) - np.array(found.shifts))

    logits = asked(held_out.frames)
    areas = areas_of(held_out, logits)
    ece = _ece(logits, held_out)
    draws = derive_seed(seed, "probe controls") % 2**31
    controls = control_rates(held_out, asked, lambda these: where_seen(network, these), found.margins, draws)
    exchanged = exchanged_areas(held_out, asked, draws)
    sizes = {
        name: {"pictures": len(part), "groups": len(set(part.groups.tolist()))}
        for name, part in zip(PARTS, parts, strict=True)
    }
    return ProbeCard(
        findings=held_out.findings,
        modality=held_out.modality,
        width=schedule.width,
        temperatures=found.temperatures,
        shifts=found.shifts,
        margins=found.margins,
        patients="known" if held_out.patients else "unknown",
        learned_from=sizes,
        catalogue=held_out.digest,
        seed=seed,
        epochs=schedule.epochs,
        held_out=areas,
        ece=ece,
        controls=controls,
        areas_under=exchanged,
        why_not=why_not(held_out.findings, areas, ece, controls, exchanged),
    )


def _ece(logits: npt.NDArray[np.float64], pictures: LabelledFrames) -> float:
    chance = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
    return calibration_error(chance.ravel(), pictures.labels.ravel())


def _every_part(parts: list[LabelledFrames], pictures: LabelledFrames) -> None:
    for part, name in zip(parts, PARTS, strict=True):
        columns = [*zip(pictures.findings, part.labels.T, strict=True), ("none of them", part.healthy)]
        for finding, has in columns:
            if not has.any():
                raise InputError(
                    f"the {name} part holds no picture with {finding}: most of them are of one group; a probe needs "
                    "more independent pictures"
                )
