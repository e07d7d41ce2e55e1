"""rapidocr's networks as we run them, beside rapidocr itself: the same lines, words and confidences, at less cost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from plantain.pixels.arrays import Pixels
from plantain.privacy.text_reader import _models, why_no_reader

if why_no_reader():
    pytest.skip(why_no_reader(), allow_module_level=True)

from rapidocr import RapidOCR

from plantain.privacy.rapid_models import BOX_THRESHOLD, DETECTED_SIDE, LineFinder, LineReader


def page(height: int, width: int, *, turned: bool = False, colour: tuple[int, ...] = (220,) * 3) -> Pixels:
    """Grain with a name, a date and a number on it."""
    pixels = np.random.default_rng(7).integers(20, 60, (height, width, 3)).astype(np.uint8)
    for number, line in enumerate(("MARY SMITH", "14-MAR-1962", "MRN 4711382")):
        middle = (number + 1) * height // 4
        cv2.putText(
            pixels, line, (9, middle), cv2.FONT_HERSHEY_SIMPLEX, width / 500, colour, 1 + width // 500
        )
    return np.ascontiguousarray(pixels[::-1, ::-1]) if turned else pixels


@pytest.mark.parametrize(
    "shown",
    [
        page(300, 420),
        page(420, 300, turned=True, colour=(90, 200, 255)),
        page(24, 150),  # enlarged to 30, then framed
    ],
    ids=lambda shown: f"{shown.shape[1]}x{shown.shape[0]}",
)
def test_what_is_found_and_read_is_what_rapidocr_finds_and_reads(shown: Pixels) -> None:
    models = _models()
    theirs = RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.text_score": 0.0,
            "Det.box_thresh": BOX_THRESHOLD,
            "Det.limit_type": "max",
            "Det.limit_side_len": DETECTED_SIDE,
            **{f"{part}.model_path": str(path) for part, path in models.items()},
        }
    )(shown.copy())
    found = LineFinder(models["Det"]).find(shown)
    said = LineReader(models["Rec"]).read([line for _, line in found])
    ours = [(corners, *one) for (corners, _), one in zip(found, said, strict=True) if one[0].strip()]
    assert theirs.txts is not None and theirs.boxes is not None
    assert tuple(words for _, words, _ in ours) == theirs.txts
    assert tuple(sure for _, _, sure in ours) == theirs.scores
    np.testing.assert_array_equal(np.stack([corners for corners, _, _ in ours]), theirs.boxes)


def test_nothing_is_told_to_the_maker_of_the_library(tmp_path: Path) -> None:
    """onnxruntime 1.32 keeps what it is about to send, and an id of the machine, in a folder of the user's."""
    unheard = ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    surroundings = {name: value for name, value in os.environ.items() if name not in unheard}
    program = "from plantain.privacy.text_reader import open_reader; assert open_reader() is not None"
    subprocess.run([sys.executable, "-c", program], env={**surroundings, "HOME": str(tmp_path)}, check=True)
    assert not [path for path in tmp_path.rglob("*") if "Microsoft" in path.parts]
