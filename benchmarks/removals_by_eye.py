"""Removals of real tumours, looked at one by one, against what the offline judge certifies.

plantain's own editor removes the tumour of each slice that the table names. What is to be seen afterwards was labelled
by eye, by one non-clinician, on contact sheets of original and edit and enlarged where in doubt, without the judge's
verdict in view: `removals_by_eye.csv` holds file names and labels, no picture. `seen` says whether a tumour could be
made out at all before; `after`, what is to be seen:

    gone      nothing of it, and nothing new
    part      some of it is left
    left      it is there as before, whatever else was changed
    new       there is another lesion now, a mirrored one mostly
    unsure    could not be told

A row counts while the editor still changes the same place as it did when somebody looked (`x`, `y`, `share` of the
frame). "Certified" is a verdict in which the instruction is followed. From each removal of a tumour that is gone others
are made of one that is not: half of it undone (by columns or rows), a fifth done, and the tumour laid opposite.

Limits of the judge were set on "development" and are shown on "report": halves by the hash of the file's name.

    python benchmarks/removals_by_eye.py --shared ../shared [--half report]
    python benchmarks/removals_by_eye.py --draw 200 --to FOLDER     # contact sheets, and rows to fill in
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from plantain.audit.corruptions import middle_column, mirrored
from plantain.findings import load_taxonomy
from plantain.metrics.statistics.intervals import wilson
from plantain.offline.editor import render_instruction
from plantain.offline.instruments.anatomy import MAP_SIDE
from plantain.offline.instruments.brain_view import brain_view
from plantain.offline.instruments.pair import pair_of
from plantain.offline.instruments.removal import Removal, removal_of
from plantain.offline.judge import judge_encoded
from plantain.offline.language import Intent, compose
from plantain.offline.removals import doubts
from plantain.offline.rendering import CannotShow
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Direction, Licence, Observations, SourceImage, derive_seed
from plantain.rubrics import MED_BANANA
from plantain.sources.brain_slice import estimate_slice
from plantain.sources.entries import UNPREPARED, finish

TABLE = Path(__file__).with_name("removals_by_eye.csv")
COLUMNS = ("label", "file", "half", "seen", "after", "x", "y", "share")
LABELS = ("glioma", "meningioma", "pituitary")
HALVES = ("development", "report")
SAME_PLACE, SAME_SIZE = 0.04, 0.35
SIDE, ACROSS, DOWN = 300, 3, 4


@dataclass(frozen=True, slots=True, eq=False)
class Removed:
    """A removal that the editor made; `x`, `y` and `share` say where and how much of the frame it changed."""

    label: str
    file: str
    image: SourceImage
    words: str
    before: Pixels
    after: Pixels
    mask: Mask

    @property
    def place(self) -> tuple[float, float, float]:
        ys, xs = np.nonzero(self.mask)
        height, width = self.mask.shape
        return float(xs.mean() / width), float(ys.mean() / height), float(self.mask.mean())


def slice_of(folder: Path, label: str, file: str) -> tuple[SourceImage, Pixels]:
    """A slice as a catalogue holds it, plane and sequence estimated."""
    data = (folder / label / file).read_bytes()
    pixels = decode(data)
    seems = estimate_slice(pixels)
    image = SourceImage(
        id=Path(file).stem,
        dataset="Brain Tumor MRI",
        modality="brain_mri",
        labels=(label,),
        licence=Licence.UNKNOWN,
        source_sha256=hashlib.sha256(data).hexdigest(),
        prepared_sha256="",
        geometry=UNPREPARED,
        plane=seems.plane,
        sequence=seems.sequence,
    )
    image, prepared = finish(image, pixels)
    return image, decode(prepared)


def removed(folder: Path, label: str, file: str) -> Removed | str:
    """The editor's removal from one slice, or why it made none."""
    image, before = slice_of(folder, label, file)
    words = compose(Intent(label, Direction.REMOVE), load_taxonomy().get("brain_mri", label))
    try:
        made = render_instruction(before, words, image, derive_seed(1, image.id))
    except CannotShow as reason:
        return str(reason)
    return Removed(label, file, image, words, before, made.pixels, made.mask)


def measured(image: SourceImage, before: Pixels, after: Pixels) -> Removal | None:
    """What the check of removals measures."""
    pair = pair_of(before, after, "brain_mri")
    level = (
        cv2.resize(after, (MAP_SIDE, MAP_SIDE), interpolation=cv2.INTER_AREA).astype(np.float32).mean(axis=2)
    )
    return removal_of(pair, brain_view(level, image.plane).region("vault"))


def certified(removal: Removed, after: Pixels | None = None) -> bool:
    """Whether the judge says that the tumour is gone: from what the editor made, or from another picture.

    Where the check of removals alone, on pictures that were not encoded, has more than one doubt, it need not be asked.
    """
    check = measured(removal.image, removal.before, removal.after if after is None else after)
    if check is None or len(doubts(check, dark_may_be=False)) > 1:
        return False
    seen = judge_encoded(
        encode_source(removal.before),
        encode_jpeg(removal.after if after is None else after),
        removal.words,
        removal.image,
        load_taxonomy().get("brain_mri", removal.label),
        Direction.REMOVE,
        MED_BANANA,
    )
    return isinstance(seen, Observations) and bool(seen.criteria["instruction_compliance"].passed)


def spoilt(removal: Removed) -> Iterator[tuple[str, Pixels]]:
    """Removals that are none, made from one that is."""
    before, after = removal.before.astype(np.float32), removal.after.astype(np.float32)
    ys, xs = np.nonzero(removal.mask)
    rows, columns = np.mgrid[: before.shape[0], : before.shape[1]]
    for name, along, middle in (("columns", columns, np.median(xs)), ("rows", rows, np.median(ys))):
        stays = np.clip((along - middle) / 8 + 0.5, 0, 1)[..., None]
        yield f"half left, {name}", _pixels(after + stays * (before - after))
    yield "a fifth done", _pixels(before + 0.2 * (after - before))
    lesion = mirrored(before - after, middle_column(removal.before))
    yield "moved to the other side", _pixels(after + lesion)


def _pixels(values: np.ndarray) -> Pixels:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def tell(folder: Path, half: str) -> None:
    with TABLE.open() as table:
        rows = [row for row in csv.DictReader(table) if row["half"] == half]
    answers: list[tuple[str, str, bool]] = []
    made: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    changed = 0
    for row in rows:
        removal = removed(folder, row["label"], row["file"])
        if isinstance(removal, str) or not _same(removal, row):
            changed += 1
            continue
        answers.append((row["seen"], row["after"], certified(removal)))
        if row["after"] == "gone":
            for name, after in spoilt(removal):
                made[name] += 1
                caught[name] += not certified(removal, after)
    print(f"{half}: {len(answers)} removals looked at; {changed} more that the editor no longer makes so")
    for kind in ("gone", "part", "left", "new", "unsure"):
        own = [yes for _, after, yes in answers if after == kind]
        print(f"  {kind:<8}{len(own):>4}, certified {sum(own)}")
    yes = [after for _, after, said in answers if said]
    wrong = sum(after in ("part", "left", "new") for after in yes)
    doubtful = sum(after == "unsure" for after in yes)
    clean = [said for _, after, said in answers if after == "gone"]
    print(f"certificates that are wrong: {rate(wrong, len(yes))}; {doubtful} more could not be told by eye")
    print(f"clean removals certified: {rate(sum(clean), len(clean))}")
    for name, count in made.items():
        print(f"{name}: not certified {rate(caught[name], count)}")


def _same(removal: Removed, row: dict[str, str]) -> bool:
    x, y, share = removal.place
    near = np.hypot(x - float(row["x"]), y - float(row["y"])) <= SAME_PLACE
    return bool(near and abs(share / float(row["share"]) - 1) <= SAME_SIZE)


def rate(count: int, of: int) -> str:
    if not of:
        return "0 of 0"
    low, high = wilson(count, of)
    return f"{count} of {of}: {count / of:.1%} ({low:.1%} to {high:.1%})"


def draw(folder: Path, half: str, wanted: int, to: Path) -> None:
    """Contact sheets of so many removals, labels in turns, and their rows with `seen` and `after` to be filled in."""
    to.mkdir(parents=True, exist_ok=True)
    kept: list[Removed] = []
    for label, file in _drawn(folder, half):
        if len(kept) == wanted:
            break
        removal = removed(folder, label, file)
        if not isinstance(removal, str):
            kept.append(removal)
    with (to / TABLE.name).open("w", newline="") as table:
        rows = csv.writer(table, lineterminator="\n")
        rows.writerow(COLUMNS)
        for removal in kept:
            place = [f"{value:.3f}" for value in removal.place]
            rows.writerow([removal.label, removal.file, half, "", "", *place])
    for first in range(0, len(kept), ACROSS * DOWN):
        tiles = [_tile(first + k, one) for k, one in enumerate(kept[first : first + ACROSS * DOWN])]
        tiles += [np.zeros_like(tiles[0])] * (ACROSS * DOWN - len(tiles))
        lines = [np.hstack(tiles[k * ACROSS : (k + 1) * ACROSS]) for k in range(DOWN)]
        cv2.imwrite(str(to / f"{first:03d}.png"), np.vstack(lines))


def _drawn(folder: Path, half: str) -> Iterator[tuple[str, str]]:
    """Slices of one half, the three labels in turns, in an order that their names do not tell."""
    own = [
        sorted(
            (p.name for p in (folder / label).glob("*.jpg") if HALVES[_hash(p.stem) % 2] == half),
            key=lambda name: _hash(f"removal {name}"),
        )
        for label in LABELS
    ]
    for names in zip(*own, strict=False):
        yield from zip(LABELS, names, strict=True)


def _hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)


def _tile(number: int, removal: Removed) -> Pixels:
    ys, xs = np.nonzero(removal.before.max(axis=2) > 12)
    tile = np.full((SIDE + 16, 2 * SIDE + 6, 3), 25, np.uint8)
    for k, pixels in enumerate((removal.before, removal.after)):
        cut = pixels[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]
        scale = SIDE / max(cut.shape[:2])
        shown = cv2.resize(cut, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)[:SIDE, :SIDE]
        tile[16 : 16 + shown.shape[0], k * (SIDE + 2) :][:, : shown.shape[1]] = shown[..., ::-1]
    words = f"{number} {removal.label} {removal.file}"
    cv2.putText(tile, words, (2, 12), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (120, 220, 250), 1, cv2.LINE_AA)
    return tile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--half", choices=HALVES, default="report")
    parser.add_argument("--draw", type=int, default=0, help="make sheets of so many removals instead")
    parser.add_argument("--to", type=Path, default=Path("bench-out/removals"))
    options = parser.parse_args()
    folder = options.shared / "data/brain-tumor-mri/Training"
    if options.draw:
        draw(folder, options.half, options.draw, options.to)
    else:
        tell(folder, options.half)
    return 0


if __name__ == "__main__":
    sys.exit(main())
