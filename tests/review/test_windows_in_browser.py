"""Originals of more than 8 bits in a real browser: each window of the file, against pydicom's own look-ups."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path

import cv2
import numpy as np
import pydicom
import pytest
from pydicom.pixels import apply_modality_lut, apply_voi_lut

from plantain.pixels.decode import decode_untrusted
from plantain.pixels.dicom.pictures import decode_dicom
from plantain.pixels.prepare import prepare
from plantain.pixels.wide import read_wide
from plantain.review.freezing import Wanted, new_study
from plantain.review.orders import reader_order
from plantain.review.sources import Material
from plantain.review.study import ORIGINAL, ReaderTask
from plantain.rubrics import MED_BANANA
from review.in_browser import CHROMIUM, at_first_item
from review.test_wide import computed_tomogram

pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")]
UNITS = {"ct": "(HU)", "png": "(stored values)"}


def material_of(kind: str, data: bytes) -> Material:
    pixels = decode_untrusted(data, kind) if kind == "png" else decode_dicom(data, kind)
    prepared, geometry = prepare(pixels, 256)
    return Material(
        kind, kind, "all", kind, "ct", "nodule", "add", "Add it.", {ORIGINAL: lambda: prepared, "m": lambda: prepared},
        spacing_mm=0.66, wide=lambda shown: read_wide(data, kind, 0, geometry, shown),
    )  # fmt: skip


def test_originals_are_windowed_as_pydicom_does(browser, tmp_path: Path):
    """MONOCHROME1 is turned round; one window lies outside of all values; the whole range is the prepared picture."""
    files = {kind: original_of(kind) for kind in ("ct", "pet", "mono1", "exact", "png")}
    found = [material_of(kind, data) for kind, (data, _) in files.items()]
    study = new_study(tmp_path / "s", found, ["x"], Wanted("Wide", 0, (ReaderTask.ACCEPT,), MED_BANANA))
    with at_first_item(browser, study) as (screen, _):
        page = screen.page
        for item in reader_order(study, study.blocks[0], 0):
            kind = study.by_case[item.case].source
            data, windows = files[kind]
            assert UNITS.get(kind, "") in page.inner_text("#depth")
            assert page.locator("#panels .scale").count() == 2
            prepared = next(one for one in found if one.source == kind).pictures[ORIGINAL]()
            assert np.abs(on_canvas(page) - prepared[..., 0]).max() <= 1, kind
            for place, (name, width, centre) in enumerate(windows):
                page.select_option("#preset", label=f"{name}: W {width} L {centre}")
                page.wait_for_selector(f"#view:has-text('W {width} L {centre} ')")
                assert np.abs(on_canvas(page) - by_pydicom(data, place)).max() <= 0.5 + 1e-6, (kind, name)
            if shots := os.environ.get("PLANTAIN_SHOTS"):
                page.screenshot(path=f"{shots}/{kind}.png")
            screen.press("a")
            screen.then(page.keyboard.press, "Enter")


def original_of(kind: str) -> tuple[bytes, list[tuple[str, int, int]]]:
    """A file of 256 x 256 with more than 8 bits, and its windows: name, width, centre."""
    dataset = pydicom.dcmread(io.BytesIO(computed_tomogram()[0]))
    if kind == "png":  # no window but the whole of 16 bits
        ramp = (np.arange(256)[:, None] * 180 + np.arange(256) * 70).astype(np.uint16)
        return cv2.imencode(".png", ramp)[1].tobytes(), []
    slope, intercept, windows = {
        "ct": (1, -1024, [("SOFT", 400, 40), ("BRAIN", 80, 40), ("NOTHING", 300, 9000)]),
        "pet": (0.37, 2.5, [("UPTAKE", 300, 600), ("NARROW", 20, 500)]),
        "mono1": (1, 0, [("FILM", 1800, 1100), ("DENSE", 300, 1000)]),
        "exact": (2, -1000, [("FILM", 2000, 1200), ("NARROW", 64, 900)]),
    }[kind]
    dataset.RescaleSlope, dataset.RescaleIntercept = slope, intercept
    dataset.WindowCenterWidthExplanation = [name for name, _, _ in windows]
    dataset.WindowWidth, dataset.WindowCenter = [w for _, w, _ in windows], [c for _, _, c in windows]
    if kind != "ct":
        dataset.Modality, dataset.RescaleType = "DX" if kind == "mono1" else "PT", "US"
    dataset.PhotometricInterpretation = "MONOCHROME1" if kind == "mono1" else "MONOCHROME2"
    if kind == "exact":
        dataset.VOILUTFunction = "LINEAR_EXACT"
    buffer = io.BytesIO()
    dataset.save_as(buffer)
    return buffer.getvalue(), windows


def by_pydicom(data: bytes, place: int) -> np.ndarray:
    """What a window of the file shows, 0 to 255: pydicom's values between the least and the most that it gives."""
    dataset = pydicom.dcmread(io.BytesIO(data))
    values = np.asarray(apply_modality_lut(dataset.pixel_array, dataset), np.float64)
    reach = np.append(values.ravel(), [-1e9, 1e9])  # so that both ends of its range are among what it gives
    shown = apply_voi_lut(reach, dataset, index=place)
    grey = 255 * (shown - shown.min()) / (shown.max() - shown.min())
    return (255 - grey if dataset.PhotometricInterpretation == "MONOCHROME1" else grey)[:-2].reshape(256, 256)


def on_canvas(page) -> np.ndarray:
    """The grey levels of the windowed original, (256, 256)."""
    script = """(() => { const { data } = pixelsOf(pictures.windowed()); let red = "";
      for (let i = 0; i < data.length; i += 4) red += String.fromCharCode(data[i]);
      return btoa(red); })()"""
    return np.frombuffer(base64.b64decode(page.evaluate(script)), np.uint8).reshape(256, 256).astype(float)
