"""Can edits be told from originals that were merely encoded again, by their traces alone? By editor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.areas import clustered_area
from plantain.models.probe.card import Area
from plantain.pixels.arrays import Floats
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import InputError, derive_seed
from plantain.records.counts import counted
from plantain.train.probe.edits import MadeEdit
from plantain.train.probe.traces import LEAST_TILES, tile_count, traces, untouched

FEWEST = 20
"""Groups of an editor below which nothing is said."""

FOLDS = 5
RIDGE = 1.0


@dataclass(frozen=True, slots=True)
class Separability:
    """How well one editor's edits are told from re-encoded originals.

    Attributes:
        editor: whose.
        whole: by the whole picture, what was drawn included.
        outside: by what lies outside the edit alone: traces of how the picture was handled.
        edits: how many; `left_out` had too little outside the edit.
        why_not: why nothing is said; "" where something is.
    """

    editor: str
    whole: Area
    outside: Area
    edits: int
    left_out: int
    why_not: str = ""


def separabilities(edits: Sequence[MadeEdit], seed: int = 0) -> list[Separability]:
    """For each editor, cross-validated over groups: edits against controls of the same originals.

    A control is the original, encoded as the edit was. So a half of the area is what nobody can tell, and 1 is an
    editor whose every picture gives itself away.

    Raises:
        InputError: there is no edit.
    """
    if not edits:
        raise InputError("no edits to tell from originals")
    editors = sorted({edit.editor for edit in edits})
    return [_of(editor, [edit for edit in edits if edit.editor == editor], seed) for editor in editors]


def _of(editor: str, edits: Sequence[MadeEdit], seed: int) -> Separability:
    groups = {edit.group for edit in edits}
    nothing = Area(None, None, None, 2 * len(edits), len(groups))
    if len(groups) < FEWEST:
        why = f"{counted(len(groups), 'independent original')}; {FEWEST} are needed"
        return Separability(editor, nothing, nothing, len(edits), 0, why)
    whole, outside, kept = [], [], []
    for edit in edits:
        control = decode(encode_jpeg(edit.before))
        everywhere = np.ones(edit.before.shape[:2], bool)
        whole.append((traces(control, everywhere), traces(edit.after, everywhere)))
        where = untouched(edit.before, edit.after)
        if tile_count(where) >= LEAST_TILES:
            outside.append((traces(control, where), traces(edit.after, where)))
            kept.append(edit.group)
    return Separability(
        editor,
        separated(whole, [edit.group for edit in edits], seed),
        separated(outside, kept, seed) if len(set(kept)) >= FEWEST else nothing,
        len(edits),
        len(edits) - len(kept),
    )


def separated(pairs: Sequence[tuple[Floats, Floats]], groups: Sequence[str], seed: int) -> Area:
    """AUC of a ridge logistic regression that learned from other groups; (control, edit) of each pair."""
    rows = np.concatenate(
        [np.stack([control for control, _ in pairs]), np.stack([edit for _, edit in pairs])]
    )
    is_edit = np.repeat([False, True], len(pairs))
    whose = np.array([*groups, *groups])
    names = sorted(set(groups), key=lambda name: derive_seed(seed, "fold", name))
    fold = {name: number % FOLDS for number, name in enumerate(names)}
    folds = np.array([fold[name] for name in whose.tolist()])
    scores = np.zeros(len(rows))
    for number in range(FOLDS):
        held = folds == number
        scores[held] = _learned(rows[~held], is_edit[~held], rows[held])
    return Area(*clustered_area(scores, is_edit, whose), len(rows), len(names))


def _learned(rows: Floats, truth: npt.NDArray[np.bool_], asked: Floats) -> Floats:
    """Logits of rows by a ridge logistic regression, fitted by Newton's method."""
    middle, spread = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-6)
    x = np.column_stack([(rows - middle) / spread, np.ones(len(rows))])
    ridge = RIDGE * np.eye(x.shape[1])
    ridge[-1, -1] = 0.0
    beta = np.zeros(x.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        slope = x.T @ (truth - chance) - ridge @ beta
        step = np.linalg.solve(
            (x * (chance * (1 - chance))[:, None]).T @ x + ridge + 1e-9 * np.eye(len(beta)), slope
        )
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    predicted: Floats = np.column_stack([(asked - middle) / spread, np.ones(len(asked))]) @ beta
    return predicted
