"""How much of an edit is kept and how much of the original is restored: `[loop] restore = "outside"` on degraded edits.

The offline editor's own edits (added, or exactly undone) are degraded as hosted editors degrade theirs: moved and bent
by up to two pixels, given other tones, resampled, noisy, and with their texture drawn again. The restored image is then
compared with the original and with the clean edit, pixel by pixel; no judge is involved.

Targets: outside of the mask at most 1 grey level from the original before the final JPEG and from the re-encoded
original after it; at least 90 % of the restored edits keep 75 to 133 % of the clean edit's strength and leave at most
5 % of its energy outside of the mask. Strength is the clean edit's share in the restored difference (least squares).
Run: python benchmarks/restore_outside.py [--edits 24] [--ways all] [--data FOLDER] [--seed 1] [--to SHEETS]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from plantain.audit.clean import recipes, rendered_or_reason
from plantain.audit.images import AuditImage, package_images
from plantain.audit.planted_defects import CleanEdit
from plantain.findings import load_taxonomy
from plantain.pixels.arrays import Field, Pixels
from plantain.pixels.decode import decode, decode_untrusted
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.pixels.restore import Restored, restore_outside
from plantain.records import Licence, SourceImage
from plantain.sources.registry import UNPREPARED, finish

WAYS = ("bent", "toned", "noisy", "resampled", "redrawn", "all")

STRENGTH, BEYOND, KEPT = (0.75, 1.33), 0.05, 0.9


def degraded(edited: Pixels, way: str, rng: np.random.Generator) -> Pixels:
    """Return an edit as an editor that redraws the whole image would have returned it."""
    out = edited.astype(np.float32)
    if way in ("bent", "all"):
        out = bent(out, float(rng.uniform(0.7, 2.0)), rng)
    if way in ("redrawn", "all"):
        out = redrawn(out, rng)
    if way in ("toned", "all"):
        out = toned(out, rng)
    if way in ("resampled", "all"):
        side = int(rng.integers(700, 1000))
        small = cv2.resize(out, (side, side), interpolation=cv2.INTER_AREA)
        out = cv2.resize(small, edited.shape[1::-1], interpolation=cv2.INTER_CUBIC)
    if way in ("noisy", "all"):
        out = out + rng.normal(0, rng.uniform(1.0, 4.0), (*out.shape[:2], 1)).astype(np.float32)
    levels = np.clip(np.rint(out), 0, 255).astype(np.uint8)
    return decode(_jpeg(levels, int(rng.integers(85, 97))))


def bent(pixels: Field, most: float, rng: np.random.Generator) -> Field:
    """Shifted, turned, zoomed and smoothly warped, no pixel by more than `most`."""
    height, width = pixels.shape[:2]
    ys, xs = np.mgrid[:height, :width].astype(np.float32)
    field = np.stack(
        [
            cv2.GaussianBlur(
                rng.normal(size=(height // 8, width // 8)).astype(np.float32),
                (0, 0),
                float(rng.uniform(10, 30)),
            )
            for _ in "xy"
        ],
        -1,
    )
    field = cv2.resize(field, (width, height), interpolation=cv2.INTER_CUBIC)
    field /= np.abs(field).max()
    turn, zoom = rng.uniform(-1, 1, 2)
    u, v = xs / width - 0.5, ys / height - 0.5
    affine = np.stack([zoom * u - turn * v, turn * u + zoom * v], -1) + rng.uniform(-1, 1, 2)
    affine /= np.abs(affine).max()
    share = float(rng.uniform(0.2, 0.8))
    move = (most * (share * affine + (1 - share) * field)).astype(np.float32)
    return np.asarray(
        cv2.remap(
            pixels, xs + move[..., 0], ys + move[..., 1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
        ),
        np.float32,
    )


def toned(pixels: Field, rng: np.random.Generator) -> Field:
    """Another gamma, contrast and brightness, and light that drifts over the frame."""
    height, width = pixels.shape[:2]
    gamma, gain, shift = float(np.exp(rng.uniform(-0.2, 0.2))), rng.uniform(0.9, 1.1), rng.uniform(-8, 8)
    drift = cv2.GaussianBlur(rng.normal(size=(64, 64)).astype(np.float32), (0, 0), 16)
    drift = cv2.resize(drift / np.abs(drift).max(), (width, height), interpolation=cv2.INTER_CUBIC)[..., None]
    tone = 255 * (np.clip(pixels, 0, 255) / 255) ** gamma * gain + shift
    return np.asarray(tone + 5 * drift * (pixels > 8), np.float32)


def redrawn(pixels: Field, rng: np.random.Generator) -> Field:
    """The finest texture taken away and other texture of the same strength in its place."""
    smooth = cv2.GaussianBlur(pixels, (0, 0), 1.6)
    fine = pixels - smooth
    strength = cv2.sqrt(cv2.GaussianBlur((fine**2).mean(axis=2), (0, 0), 6.0))[..., None]
    other = rng.normal(size=pixels.shape[:2]).astype(np.float32)
    other -= cv2.GaussianBlur(other, (0, 0), 1.6)
    return smooth + strength * (other / other.std())[..., None]


def _jpeg(pixels: Pixels, quality: int) -> bytes:
    return bytes(cv2.imencode(".jpg", pixels[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1])


@dataclass(frozen=True, slots=True)
class Outcome:
    """Measurements of one degraded edit that was restored.

    Attributes:
        before_jpeg, after_jpeg: largest difference in grey levels outside of the mask.
        strength: of the clean edit in the restored image; 1 when it is all there.
        beyond: share of the clean edit's energy (squared grey levels) that the mask leaves out.
        share: share of the pixels that were restored.
    """

    before_jpeg: int
    after_jpeg: int
    strength: float
    beyond: float
    share: float

    @property
    def kept(self) -> bool:
        return STRENGTH[0] <= self.strength <= STRENGTH[1] and self.beyond <= BEYOND


def compared(clean: CleanEdit, done: Restored) -> Outcome:
    """Compare a restored image with its original and with the clean edit."""
    outside = ~done.mask
    coded, final = decode(encode_source(clean.original)), decode(encode_jpeg(done.pixels))
    asked = clean.edited.astype(np.float32) - clean.original
    made = done.pixels.astype(np.float32) - clean.original
    weight = (asked**2).sum(axis=2)
    return Outcome(
        _most(done.pixels, clean.original, outside),
        _most(final, coded, outside),
        float((asked * made).sum() / max(1.0, weight.sum())),
        float(weight[outside].sum() / max(1.0, weight.sum())),
        done.share,
    )


def _most(one: Pixels, other: Pixels, where: np.ndarray) -> int:
    return int(cv2.absdiff(one, other)[where].max()) if where.any() else 0


def shared_images(folder: Path, number: int) -> list[AuditImage]:
    """Return slices and films of a data folder, spread over all of them."""
    slices = sorted((folder / "brain-tumor-mri").rglob("Tr-no_*.jpg"))
    films = sorted((folder / "nih-chest-xray" / "frontal").glob("*.jpg"))
    found = []
    for paths, modality in ((films, "chest_xray"), (slices, "brain_mri")):
        for path in paths[:: max(1, len(paths) // max(1, number))][:number]:
            chest = modality == "chest_xray"
            image = SourceImage(
                path.stem,
                "shared",
                modality,
                (),
                Licence.UNKNOWN,
                hashlib.sha256(path.read_bytes()).hexdigest(),
                "",
                UNPREPARED,
                view="frontal" if chest else "unknown",
                projection="PA" if chest else "unknown",
                position="erect" if chest else "unknown",
                plane="unknown" if chest else "axial",
            )
            found.append(AuditImage(*finish(image, decode_untrusted(path.read_bytes(), path.name))))
    return found


def clean_edits(images: list[AuditImage], number: int, seed: int) -> Iterator[CleanEdit]:
    """Local edits of the offline editor, every modality, finding and direction in turn."""
    made = 0
    for tried, recipe in enumerate(recipes(images, load_taxonomy(), seed)):
        if made == number or tried > 20 * number:
            return
        clean = rendered_or_reason(recipe)
        if isinstance(clean, str) or clean.support == "diffuse":
            continue
        made += 1
        yield clean


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=24)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="of degrading an edit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="more images: brain-tumor-mri and nih-chest-xray/frontal")
    parser.add_argument(
        "--to", type=Path, help="original, clean edit, answer, restored image and mask, as sheets"
    )
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    images = package_images()
    if arguments.data is not None:
        images += shared_images(arguments.data, 24)
    found: dict[str, list[Outcome]] = {way: [] for way in WAYS}
    left: dict[str, Counter[str]] = {way: Counter() for way in WAYS}
    seconds: list[float] = []
    for number, clean in enumerate(clean_edits(images, arguments.edits, arguments.seed)):
        for way in arguments.ways:
            # One stream for each, so that a single case can be repeated.
            rng = np.random.default_rng([arguments.seed, number, WAYS.index(way)])
            answer = degraded(clean.edited, way, rng)
            started = time.thread_time()
            done = restore_outside(clean.original, answer, clean.finding)
            seconds.append(time.thread_time() - started)
            if arguments.to:
                arguments.to.mkdir(parents=True, exist_ok=True)
                sheet = _sheet(clean, answer, done)
                cv2.imwrite(str(arguments.to / f"{number:03d}-{way}.jpg"), sheet[..., ::-1])
            if done.why_not:
                left[way][done.why_not.split(":")[0]] += 1
                print(f"  {number} {clean.name} {way}: {done.why_not}", flush=True)
                continue
            found[way].append(one := compared(clean, done))
            if not one.kept:
                print(f"  {number} {clean.name} {way}: {one}", flush=True)
    return _report(found, left, seconds)


def _sheet(clean: CleanEdit, answer: Pixels, done: Restored) -> Pixels:
    mask = np.repeat(255 * done.mask[..., None].astype(np.uint8), 3, 2)
    images = (clean.original, clean.edited, answer, done.pixels, mask)
    return np.hstack([cv2.resize(one, (384, 384), interpolation=cv2.INTER_AREA) for one in images])


def _report(found: dict[str, list[Outcome]], left: dict[str, Counter[str]], seconds: list[float]) -> int:
    print(f"{'degraded':10}{'restored':>9}{'refused':>9}{'before':>8}{'after':>7}{'kept':>8}{'share':>8}")
    met = True
    for way, rows in found.items():
        if rows:
            kept = sum(row.kept for row in rows) / len(rows)
            most = max(row.before_jpeg for row in rows), max(row.after_jpeg for row in rows)
            share = float(np.mean([row.share for row in rows]))
            refused = sum(left[way].values())
            print(f"{way:10}{len(rows):9}{refused:9}{most[0]:8}{most[1]:7}{kept:8.1%}{share:8.1%}")
            met &= max(most) <= 1
    every = [row for rows in found.values() for row in rows]
    kept = sum(row.kept for row in every) / max(1, len(every))
    print(f"kept over all: {kept:.1%} of {len(every)}; {np.median(seconds):.2f} s of processor time (median)")
    for way, reasons in left.items():
        for reason, number in reasons.most_common():
            print(f"refused, {way}: {number} x {reason}")
    return 0 if met and kept >= KEPT else 1


if __name__ == "__main__":
    sys.exit(main())
