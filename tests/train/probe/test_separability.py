from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from plantain.cli.train.separability import app
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Direction, InputError
from plantain.train.probe.edits import MadeEdit, made_edits
from plantain.train.probe.page import write_separability_page
from plantain.train.probe.separability import _learned, separabilities
from plantain.train.probe.traces import untouched

from .heads import head


def _edit(seed: int, editor: str) -> MadeEdit:
    """A ring drawn on a grainy head, by an editor that returns the rest as it was, or smooths all of it."""
    rng = np.random.default_rng(seed)
    before = cv2.resize(head(seed, ring=False), (256, 256), interpolation=cv2.INTER_CUBIC)
    before = np.clip(before + rng.normal(0, 4, (256, 256, 1)), 0, 255).astype(np.uint8)
    after = before.copy()
    cv2.circle(after, (128, 128), 26, (190, 190, 190), 8)
    if editor == "smooth":
        after = cv2.GaussianBlur(after, (0, 0), 0.6)
    return MadeEdit(
        f"{editor} {seed}", editor, str(seed), "glioma", Direction.ADD, before, decode(encode_jpeg(after))
    )


@pytest.fixture(scope="module")
def edits() -> list[MadeEdit]:
    return [_edit(seed, editor) for editor in ("careful", "smooth") for seed in range(20)]


def test_a_smoothing_editor_gives_itself_away_outside_the_edit_and_a_careful_one_does_not(
    edits: list[MadeEdit], tmp_path: Path
) -> None:
    careful, smooth = separabilities(edits)
    assert (careful.editor, smooth.editor) == ("careful", "smooth")
    assert smooth.outside.auc is not None and smooth.outside.auc > 0.95
    assert careful.outside.low is not None and careful.outside.low <= 0.5
    page = write_separability_page([careful, smooth], "made", tmp_path).read_text()
    assert "smooth" in page and "Outside the edit" in page
    assert len(json.loads((tmp_path / "separability.json").read_text())["editors"]) == 2


def test_few_originals_say_nothing(edits: list[MadeEdit], tmp_path: Path) -> None:
    (found,) = separabilities(edits[:5])
    assert found.whole.auc is None and found.why_not == "5 independent originals; 20 are needed"
    assert write_separability_page([found], "made", tmp_path).read_text().count("20 are needed") == 1
    with pytest.raises(InputError, match="no edits"):
        separabilities([])


def test_what_is_untouched_leaves_the_edit_out(edits: list[MadeEdit]) -> None:
    where = untouched(edits[0].before, edits[0].after)
    assert not where[102, 128] and not where[128, 102] and where[30, 30]


def test_the_regression_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    rows, asked = rng.normal(size=(80, 4)), rng.normal(size=(9, 4))
    truth = rows[:, 0] + rng.normal(size=80) > 0
    mine = _learned(rows, truth, asked)
    middle, spread = rows.mean(axis=0), rows.std(axis=0)
    theirs = LogisticRegression(C=1.0, tol=1e-10).fit((rows - middle) / spread, truth)
    assert mine == pytest.approx(theirs.decision_function((asked - middle) / spread), abs=1e-4)


def test_a_folder_that_is_neither_run_nor_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        made_edits(tmp_path)
    assert CliRunner().invoke(app, [str(tmp_path)]).exit_code != 0
