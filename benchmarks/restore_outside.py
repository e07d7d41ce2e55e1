"""How much of an edit is kept and how much of the original comes back: `[loop] restore = "outside"` on spoilt edits.

The procedural editor's own edits (added, or exactly undone) are spoilt as hosted editors spoil theirs: moved and bent
by up to two pixels, given other tones, resampled, noisy, and with their texture drawn anew. What is put back is then
compared with the original, with the clean edit's own measurements, and with the seams that the instrument judge finds.

Targets: outside of the mask at most 1 grey level from the original before the final JPEG and from the re-encoded
original after it; the finding's measurements kept in 95 % of the edits that are restored; seams no more often than on
the clean edits.
Run: python benchmarks/restore_outside.py [--edits 60] [--shared FOLDER] [--seed 1] [--pictures OUT]
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
from plantain.audit.pictures import TrialPicture, package_pictures
from plantain.audit.planted_defects import CleanEdit
from plantain.findings import load_taxonomy
from plantain.offline.instruments.evidence import Evidence, measure
from plantain.offline.instruments.pair import pair_of
from plantain.offline.instruments.presentation import presentation_of
from plantain.offline.judge import observations_of
from plantain.offline.outside import Restored, put_back
from plantain.pixels.arrays import Field, Pixels
from plantain.pixels.decode import decode, decode_untrusted
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Criterion, Licence, SourceImage
from plantain.rubrics import MED_BANANA
from plantain.sources.entries import UNPREPARED, finish

WAYS = ("bent", "toned", "noisy", "resampled", "redrawn", "all")


def spoilt(edited: Pixels, way: str, rng: np.random.Generator) -> Pixels:
    """An edit as an editor that redraws the whole picture would have returned it."""
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
    """What was measured of one spoilt edit that was put back."""

    before_jpeg: int
    after_jpeg: int
    lost: tuple[str, ...]
    """The measurements that were not kept."""
    passed: tuple[bool, bool, bool]
    seams: tuple[bool, bool, bool]
    share: float
    beyond: float
    """Share of the clean edit's change that the mask leaves out."""
    residual: float


def compared(clean: CleanEdit, answer: Pixels, done: Restored) -> Outcome:
    """The restored picture beside the original and the clean edit."""
    outside = ~done.mask
    coded = decode(encode_source(clean.original))
    final = decode(encode_jpeg(done.pixels))
    meant, seen, raw = (_evidence(clean, one) for one in (clean.edited, final, answer))
    moved = np.abs(clean.edited.astype(np.float32) - clean.original).max(axis=2) * clean.mask
    return Outcome(
        _most(done.pixels, clean.original, outside),
        _most(final, coded, outside),
        _lost(meant, seen),
        (_passes(clean, meant), _passes(clean, seen), _passes(clean, raw)),
        (_seam(clean, meant), _seam(clean, seen), _seam(clean, raw)),
        done.share,
        float(moved[outside].sum() / max(1.0, moved.sum())),
        done.residual,
    )


def _most(one: Pixels, other: Pixels, where: np.ndarray) -> int:
    return int(cv2.absdiff(one, other)[where].max()) if where.any() else 0


def _evidence(clean: CleanEdit, edited: Pixels) -> Evidence:
    pair = pair_of(clean.original, edited, clean.image.modality)
    presentation = presentation_of(clean.finding, clean.image)
    return measure(pair, clean.image, presentation, clean.direction, side=clean.intent.side)


def _lost(meant: Evidence, seen: Evidence) -> tuple[str, ...]:
    """What is not as in the clean edit: where the finding lies, how far it reaches, how strong it is, its direction."""
    kept = {
        "height": abs(meant.height - seen.height) <= 0.1,
        "left": meant.left is None or seen.left is None or abs(meant.left - seen.left) <= 0.2,
        "area": 0.6 <= seen.area / max(1, meant.area) <= 1.67,
        "level": 0.75 <= seen.level / max(0.1, meant.level) <= 1.33,
        "balance": abs(meant.balance - seen.balance) <= 0.3,
        "in_region": abs(meant.in_region - seen.in_region) <= 0.2,
    }
    return tuple(
        f"{name} {getattr(meant, name):.2f} {getattr(seen, name):.2f}"
        for name, held in kept.items()
        if not held
    )


def _passes(clean: CleanEdit, evidence: Evidence) -> bool:
    """Whether the judge finds what was asked for."""
    seen = observations_of(evidence, clean.intent, clean.direction, MED_BANANA)
    return bool(seen.criteria[Criterion.INSTRUCTION_COMPLIANCE].passed)


def _seam(clean: CleanEdit, evidence: Evidence) -> bool:
    seen = observations_of(evidence, clean.intent, clean.direction, MED_BANANA)
    return any(
        "seam" in result.evidence.lower() or "SEAM" in str(result.codes)
        for result in seen.criteria.values()
        if not result.passed
    )


def shared_pictures(folder: Path, number: int) -> list[TrialPicture]:
    """Slices and films of the shared data, spread over all of them."""
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
            found.append(TrialPicture(*finish(image, decode_untrusted(path.read_bytes(), path.name))))
    return found


def clean_edits(pictures: list[TrialPicture], number: int, seed: int) -> Iterator[CleanEdit]:
    """Local edits of the offline editor, every modality, finding and direction in turn."""
    made = 0
    for tried, recipe in enumerate(recipes(pictures, load_taxonomy(), seed)):
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
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shared", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--only", type=int, action="append", help="this edit alone, by its number")
    parser.add_argument("--verbose", action="store_true", help="what failed, and a table every eight edits")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    pictures = package_pictures("held-out")
    if arguments.shared.is_dir():
        pictures += shared_pictures(arguments.shared, 24)
    ways = arguments.way or list(WAYS)
    found: dict[str, list[Outcome]] = {way: [] for way in ways}
    left: dict[str, Counter[str]] = {way: Counter() for way in ways}
    seconds: list[float] = []
    for number, clean in enumerate(clean_edits(pictures, arguments.edits, arguments.seed)):
        if arguments.only and number not in arguments.only:
            continue
        for way in ways:
            # One stream for each, so that a single case can be looked at again.
            rng = np.random.default_rng([arguments.seed, number, WAYS.index(way)])
            answer = spoilt(clean.edited, way, rng)
            begun = time.thread_time()
            done = put_back(
                clean.original, answer, clean.instruction, clean.image, clean.finding, clean.direction
            )
            seconds.append(time.thread_time() - begun)
            if arguments.pictures:
                arguments.pictures.mkdir(exist_ok=True)
                sheet = np.hstack(
                    [
                        cv2.resize(one, (384, 384), interpolation=cv2.INTER_AREA)
                        for one in (
                            clean.original,
                            clean.edited,
                            answer,
                            done.pixels,
                            np.repeat(255 * done.mask[..., None].astype(np.uint8), 3, 2),
                        )
                    ]
                )
                cv2.imwrite(str(arguments.pictures / f"{number:03d}-{way}.jpg"), sheet[..., ::-1])
            if done.why_not:
                left[way][done.why_not.split(":")[0]] += 1
                if arguments.verbose:
                    print(f"  {number} {clean.name} {way}: {done.why_not}", flush=True)
                continue
            one = compared(clean, answer, done)
            found[way].append(one)
            if arguments.verbose and (
                one.lost or one.seams[1] > one.seams[0] or one.passed[1] < one.passed[0]
            ):
                print(f"  {number} {clean.name} {way}: {one}", flush=True)
        if arguments.verbose and number % 8 == 7:
            print(f"after {number + 1} edits:")
            _report(found, left, seconds)
    return _report(found, left, seconds)


HEADINGS = [
    "edits",
    "left",
    "before",
    "after",
    "kept",
    "clean",
    "back",
    "came",
    "clean",
    "back",
    "came",
    "share",
]


def _report(found: dict[str, list[Outcome]], left: dict[str, Counter[str]], seconds: list[float]) -> int:
    print(
        "left: as it came; before, after: most levels from the original outside, before and after the JPEG;"
    )
    print("then found by the judge, and with a seam: the clean edit, put back, as it came; share put back")
    print(f"{'spoilt':10}" + "".join(f"{heading:>7}" for heading in HEADINGS))
    met = True
    for way, rows in found.items():
        if not rows:
            continue
        kept = sum(not r.lost for r in rows) / len(rows)
        passed = [sum(r.passed[k] for r in rows) for k in range(3)]
        seams = [sum(r.seams[k] for r in rows) for k in range(3)]
        most = [max(r.before_jpeg for r in rows), max(r.after_jpeg for r in rows)]
        share = f"{np.mean([r.share for r in rows]):.1%}"
        told = [len(rows), sum(left[way].values()), *most, f"{kept:.1%}", *passed, *seams, share]
        print(f"{way:10}" + "".join(f"{value:>7}" for value in told), flush=True)
        met &= max(most) <= 1 and kept >= 0.95 and seams[1] <= seams[0]
    for way, reasons in left.items():
        for reason, number in reasons.most_common():
            print(f"left as it came, {way}: {number} x {reason}")
    print(f"{np.median(seconds):.2f} s of processor a picture (median)")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
