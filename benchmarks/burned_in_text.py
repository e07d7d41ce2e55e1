"""How much burned-in text the gate sees: planted names, dates and numbers on real images, and clean images.

Every film gets six lines in one condition: size, angle, mirroring, contrast and polarity, each varied from one plain
condition, on films 3000 pixels wide with grain. A line counts as seen where reported identifying text overlaps
it. "before" reads the prepared 1024-pixel image alone; "now" also turns lines that make no sense, and looks for fine
strokes in the original. False alarms are clean images with any such report.

Targets: every line that a reader can read in the prepared image is seen (plain condition, and turned or mirrored), and
no alarm in the clean images that arrive with the dependencies.
With --slices, small images of a folder without text: half get one line each, and the text read at 1024 pixels is
compared with the text that ingest reads; the others give false alarms. Target: no line lost.
With --alarms, every image of folders without text, as ingest reads it: how often identifying text is reported.
Run: python benchmarks/burned_in_text.py [--films 2] [--quick] [--slices FOLDER --minutes 2] [--alarms FOLDER ...]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from pydicom.data import get_testdata_file

from plantain.pixels.arrays import Field, Pixels
from plantain.pixels.boxes import Box
from plantain.pixels.decode import decode, decode_untrusted
from plantain.pixels.dicom.files import read_dicom
from plantain.pixels.dicom.render import render_planes
from plantain.pixels.encode import encode_source, prepare
from plantain.privacy import rapid_text
from plantain.privacy.rapid_text import open_reader, why_no_reader
from plantain.privacy.small_text import read_prepared, small_texts
from plantain.privacy.text import Text, TextKind, TextReader, enlarged
from plantain.sources.samples import sample_images

FONT = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
CAPITAL = 0.729
"""Height of a capital of this font by its size."""

WIDTH, GRAIN = 3000, 4.0
LINES = ("MARY SMITH", "lee, ann", "14-MAR-1962", "3/14/62", "MRN 4711382", "A00718822")
CLEAN_DICOM = ("693_UNCR.dcm", "MR2_UNCR.dcm", "CT_small.dcm", "MR_small.dcm")


@dataclass(frozen=True, slots=True)
class Condition:
    """How lines are drawn; `capital` is the height of capitals in pixels of the film."""

    capital: int = 60
    angle: int = 0
    mirrored: bool = False
    contrast: int = 110
    dark: bool = False

    def __str__(self) -> str:
        more = ["mirrored"] * self.mirrored + ["dark"] * self.dark
        small = self.capital * 1024 / WIDTH
        return (
            f"{self.capital:3d} px ({small:4.1f} prepared), {self.angle:3d} deg, {self.contrast:3d} levels"
            + (f", {' '.join(more)}" if more else "")
        )


PLAIN = Condition()
CONDITIONS = {
    "size": [replace(PLAIN, capital=capital) for capital in (7, 9, 12, 16, 24, 60, 120)],
    "angle": [replace(PLAIN, angle=angle) for angle in (10, 30, 45, 90, 135, 180, 270)],
    "small and turned": [replace(PLAIN, capital=16, angle=angle) for angle in (30, 90, 180)],
    "mirrored": [
        replace(PLAIN, capital=c, angle=a, mirrored=True) for c, a in ((60, 0), (16, 0), (60, 90), (60, 180))
    ],
    "contrast": [
        replace(PLAIN, contrast=levels, dark=dark) for levels in (8, 12, 20, 40) for dark in (False, True)
    ],
    "small and faint": [replace(PLAIN, capital=16, contrast=levels) for levels in (20, 40)],
}
QUICK = {
    "size": CONDITIONS["size"][1:6:2],
    "angle": CONDITIONS["angle"][3:6:2],
    "mirrored": CONDITIONS["mirrored"][:1],
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--films", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a few conditions")
    parser.add_argument("--slices", type=Path, help="only this: a folder of small images without text")
    parser.add_argument("--alarms", type=Path, nargs="+", help="only this: folders of images without text")
    parser.add_argument("--minutes", type=float, default=2.0)
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    reader = open_reader()
    if reader is None:
        print(why_no_reader())
        return 0
    if arguments.alarms:
        for folder in arguments.alarms:
            _alarms(reader, folder)
        return 0
    if arguments.slices:
        return 0 if _slices(reader, arguments.slices, arguments.minutes) else 1
    films = _films()[: arguments.films]
    met = _recall(reader, films, QUICK if arguments.quick else CONDITIONS)
    met &= _clean(reader)
    return 0 if met else 1


def _recall(reader: TextReader, films: Sequence[Pixels], conditions: dict[str, list[Condition]]) -> bool:
    print(f"lines seen of {len(LINES) * len(films)}; processor seconds an image")
    print(f"{'':52} {'before':>8} {'now':>8} {'s before':>9} {'s now':>7}")
    met, rng = True, np.random.default_rng(4)
    for name, group in conditions.items():
        print(name)
        for condition in group:
            seen, seconds = np.zeros(2, int), np.zeros(2)
            for film in films:
                planted, places = plant(film, condition, rng)
                (plain, now), took = _read_both(planted, reader)
                seen += [sum(_overlap(texts, place) for place in places) for texts in (plain, now)]
                seconds += took
            all_lines = len(LINES) * len(films)
            mean = seconds / len(films)
            print(f"  {condition!s:50} {seen[0]:8d} {seen[1]:8d} {mean[0]:9.2f} {mean[1]:7.2f}", flush=True)
            legible = condition.capital >= 16 and condition.contrast >= 40
            met &= seen[1] == all_lines if legible else True
    return met


def _slices(reader: TextReader, folder: Path, minutes: float) -> bool:
    """Lines lost and won, and false alarms, by reading enlarged images smaller."""
    rng = np.random.default_rng(7)
    files = _images(folder)
    rng.shuffle(files)
    ends = time.monotonic() + 60 * minutes
    seconds, planted, seen, lost, alarms, clean = np.zeros(2), 0, np.zeros(2, int), [], [], 0
    for number, file in enumerate(files):
        if time.monotonic() > ends:
            break
        pixels, line = decode_untrusted(file.read_bytes(), file.name), None
        if number % 2:
            capital, angle = int(rng.choice([5, 6, 7, 8, 10, 14])), int(rng.choice([0, 0, 90, 180]))
            condition = Condition(capital, angle, contrast=int(rng.choice([20, 40, 110])))
            text = LINES[int(rng.integers(len(LINES)))]
            line = _one_line(pixels, text, condition, rng)
            if line is None:
                continue
            pixels = line[0]
        prepared, geometry = prepare(pixels)
        shown = decode(encode_source(prepared))
        started = time.thread_time()
        whole = [text for text in reader.read(shown) if text.kind.identifying]
        middle = time.thread_time()
        now = [text for text in read_prepared(shown, geometry, reader) if text.kind.identifying]
        seconds += (middle - started, time.thread_time() - middle)
        if line is None:
            clean += 1
            alarms += [f"{file.name}: {[one.text for one in now]}"] if now else []
            continue
        planted += 1
        by = geometry.inner_width / geometry.width
        place = enlarged(Text("", now[0].kind if now else TextKind.OTHER, line[1], 1.0), by).box.moved(
            geometry.left, geometry.top
        )
        both = _overlap(whole, place), _overlap(now, place)
        seen += both
        if both == (True, False):
            lost.append(f"{file.name}: {text!r}, {condition}")
    print(
        f"of {planted} lines, at 1024 pixels {seen[0]} and as ingest reads them {seen[1]}; lost {len(lost)}"
    )
    print(f"false alarms: {len(alarms)} of {clean}")
    print(
        f"{seconds[1] / seconds[0]:.2f} of the time; {seconds[1] / (planted + clean):.3f} s of processor each"
    )
    for failure in (*lost, *alarms):
        print(f"  {failure}")
    return not lost


def _alarms(reader: TextReader, folder: Path) -> None:
    """Every image of a folder, by the same two readings as the gate of ingest."""
    alarms, kinds, seconds, files = [], Counter[str](), 0.0, _images(folder)
    for number, file in enumerate(files, 1):
        pixels = decode_untrusted(file.read_bytes(), file.name)
        prepared, geometry = prepare(pixels)
        shown = decode(encode_source(prepared))
        started = time.thread_time()
        texts = (
            *read_prepared(shown, geometry, reader),
            *small_texts(pixels, reader, max(geometry.inner_width, geometry.inner_height)),
        )
        seconds += time.thread_time() - started
        identifying = [text for text in texts if text.kind.identifying]
        kinds.update({text.kind.value for text in texts})
        if identifying:
            alarms.append(f"{file.name}: {[(one.text, one.kind.value, one.sure) for one in identifying]}")
            print(f"  {number}: {alarms[-1]}", flush=True)
    each = seconds / max(1, len(files))
    print(f"{folder.name}: {len(alarms)} of {len(files)} quarantined; {each:.3f} s of processor each")
    print(f"images with text of each kind: {dict(kinds)}", flush=True)


def _images(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".png", ".jpg", ".jpeg"))


def _one_line(
    pixels: Pixels, text: str, condition: Condition, rng: np.random.Generator
) -> tuple[Pixels, Box] | None:
    """Return the image with one line anywhere on it, and the place of the line; None where it has no room."""
    stamp = _stamp(text, condition)
    (height, width), (high, wide) = pixels.shape[:2], stamp.shape
    if high > height or wide > width:
        return None
    top, left = int(rng.integers(0, height - high + 1)), int(rng.integers(0, width - wide + 1))
    out = pixels.astype(np.float32)
    part = out[top : top + high, left : left + wide]
    dark = float(np.median(part)) > 250 - condition.contrast
    part += stamp[:, :, None] * condition.contrast * (-1 if dark else 1)
    return np.clip(np.rint(out), 0, 255).astype(np.uint8), Box(left, top, wide, high)


def _read_both(film: Pixels, reader: TextReader) -> tuple[tuple[list[Text], list[Text]], tuple[float, float]]:
    """Identifying text in pixels of the film as it was read once and is now, and the seconds of both."""
    prepared, geometry = prepare(film)
    shown = decode(encode_source(prepared))
    started = time.thread_time()
    plain = _upright_only(reader, shown)
    middle = time.thread_time()
    texts = reader.read(shown)
    small = small_texts(film, reader)
    took = (middle - started, time.thread_time() - middle)
    across, down = geometry.width / geometry.inner_width, geometry.height / geometry.inner_height

    def in_film(found: Sequence[Text]) -> list[Text]:
        moved = []
        for text in found:
            left, top = (text.box.left - geometry.left) * across, (text.box.top - geometry.top) * down
            box = Box(round(left), round(top), round(text.box.width * across), round(text.box.height * down))
            moved.append(replace(text, box=box))
        return [text for text in moved if text.kind.identifying]

    return (in_film(plain), in_film(texts) + [text for text in small if text.kind.identifying]), took


def _upright_only(reader: TextReader, shown: Pixels) -> tuple[Text, ...]:
    """As text was read before doubtful lines were turned."""
    turning = rapid_text._turn
    rapid_text._turn = lambda *_: None
    try:
        return reader.read(shown)
    finally:
        rapid_text._turn = turning


def plant(film: Pixels, condition: Condition, rng: np.random.Generator) -> tuple[Pixels, list[Box]]:
    """The film with all lines drawn on it, each in a sixth of its own, and where they lie."""
    out = film.astype(np.float32)
    height, width = film.shape[:2]
    places = []
    for number, line in enumerate(LINES):
        stamp = _stamp(line, condition)
        high, wide = stamp.shape
        cell_top, cell_left = (number // 2) * height // 3, (number % 2) * width // 2
        top = cell_top + int(rng.integers(0, max(1, height // 3 - high)))
        left = cell_left + int(rng.integers(0, max(1, width // 2 - wide)))
        part = out[top : top + high, left : left + wide]
        stamp = stamp[: part.shape[0], : part.shape[1], None]
        # Letters on white are dark and on black are bright, whatever the options: otherwise they would be unreadable.
        usual = float(np.median(part))
        dark = (condition.dark and usual > condition.contrast) or usual > 250 - condition.contrast
        part += stamp * condition.contrast * (-1 if dark else 1)
        places.append(Box(left, top, wide, high))
    return np.clip(np.rint(out), 0, 255).astype(np.uint8), places


def _stamp(line: str, condition: Condition) -> Field:
    font = ImageFont.truetype(str(FONT), max(4, round(condition.capital / CAPITAL)))
    left, top, right, bottom = font.getbbox(line)
    image = Image.new("L", (int(right - left) + 4, int(bottom - top) + 4), 0)
    ImageDraw.Draw(image).text((2 - left, 2 - top), line, font=font, fill=255)
    if condition.mirrored:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    turned = image.rotate(condition.angle, expand=True, resample=Image.Resampling.BICUBIC)
    return np.asarray(turned, np.float32) / 255.0


def _overlap(texts: Sequence[Text], place: Box) -> bool:
    return any(text.box.overlaps(place) for text in texts)


def _films() -> list[Pixels]:
    """The radiograph and the fundus of the packages at a film's width, with grain of their own width."""
    rng, films = np.random.default_rng(3), []
    for sample in sample_images():
        if min(sample.pixels.shape[:2]) > 1024:
            high = round(WIDTH * sample.pixels.shape[0] / sample.pixels.shape[1])
            film = cv2.resize(sample.pixels, (WIDTH, high), interpolation=cv2.INTER_CUBIC)
            grain = rng.normal(0.0, GRAIN, (high, WIDTH, 1))
            films.append(np.clip(np.rint(film + grain), 0, 255).astype(np.uint8))
    return films


def _clean(reader: TextReader) -> bool:
    print("\nclean images with a report of identifying text")
    met = True
    for name, images in (("packages", _packages()),):
        number, alarms, seconds = 0, [], np.zeros(2)
        for title, pixels in images:
            (plain, now), took = _read_both(pixels, reader)
            number += 1
            seconds += took
            if plain or now:
                alarms.append(f"{title}: before {[t.text for t in plain]}, now {[t.text for t in now]}")
        if number:
            mean = seconds / number
            print(f"  {name}: {len(alarms)} of {number}; {mean[0]:.2f} s before, {mean[1]:.2f} s now")
            met &= not alarms or name != "packages"
        for alarm in alarms:
            print(f"    {alarm}")
    return met


def _packages() -> Iterator[tuple[str, Pixels]]:
    for sample in sample_images():
        yield sample.image.id, sample.pixels
    for name in CLEAN_DICOM:
        path = get_testdata_file(name, download=False)
        if path is not None:
            grey = render_planes(read_dicom(Path(str(path)).read_bytes(), name), name)
            yield name, np.dstack([grey] * 3)


if __name__ == "__main__":
    sys.exit(main())
