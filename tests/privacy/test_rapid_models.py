"""rapidocr's networks as we run them, beside rapidocr itself: the same lines, words and confidences, at less cost."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from plantain.pixels.arrays import Pixels
from plantain.privacy.text_reader import _models, open_reader, why_no_reader

if why_no_reader():
    pytest.skip(why_no_reader(), allow_module_level=True)

from rapidocr import RapidOCR

from plantain.privacy import rapid_models
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
        page(40, 400),  # more than eight times as wide as high: framed
        page(1500, 600),  # shrunk to 1024
        page(96, 2200),  # shrunk to 2000, then framed, then shrunk to 1024
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


def test_threads_share_one_pair_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def counted(model: object) -> object:
        loaded.append(model)
        return real(model)  # type: ignore[arg-type]

    real = rapid_models._session
    monkeypatch.setattr(rapid_models, "_session", counted)
    reader, shown = open_reader(), page(200, 300)
    assert reader is not None
    with ThreadPoolExecutor(4) as pool:
        read = set(pool.map(reader.read, [shown] * 4))
    assert len(loaded) == 2
    assert len(read) == 1


@pytest.mark.parametrize("turns", [0, 1])
def test_a_long_strip_is_looked_at(turns: int) -> None:
    """What is not black may be one line across a picture, which rapidocr cannot shrink: it raises, or leaves it."""
    reader = open_reader()
    assert reader is not None
    strip = np.zeros((30, 4000, 3), np.uint8)
    cv2.putText(strip, "MARY SMITH", (100, 25), cv2.FONT_HERSHEY_SIMPLEX, 0.9, (255,) * 3, 2)
    strip[28:] = 255
    # Standing, it has letters five pixels high in what is looked at: too small, but no error.
    texts = reader.read(np.ascontiguousarray(np.rot90(strip, turns)))
    assert any(text.kind.identifying for text in texts) or turns


def test_nothing_is_told_to_the_maker_of_the_library(tmp_path: Path) -> None:
    """onnxruntime 1.32 keeps what it is about to send, and an id of the machine, in a folder of the user's."""
    unheard = ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    surroundings = {name: value for name, value in os.environ.items() if name not in unheard}
    program = "from plantain.privacy.text_reader import open_reader; assert open_reader() is not None"
    subprocess.run([sys.executable, "-c", program], env={**surroundings, "HOME": str(tmp_path)}, check=True)
    assert not [path for path in tmp_path.rglob("*") if "Microsoft" in path.parts]
