"""The offline judge's card: how often it accepts edits that are right, and edits that are not.

Every edit is drawn on a real image: by the offline editor ("own"), by its exact undoing ("undone"), by the editor's own
removal of what it drew ("removed"), by naive editors ("blob", "dots", "grey wash"), and the own edit requested as every
other finding ("wrong label"). Shares are over edits that could be made; undecided counts as not accepted.

    python benchmarks/instrument_card.py package
    python benchmarks/instrument_card.py chest brain --data FOLDER --half report --images 24
    python benchmarks/instrument_card.py CATALOGUE

The images of --data are split in two halves by a hash of patient or file: thresholds were chosen on "development", and
"report" is for showing them.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from plantain.audit.clean import CleanEditRecipe, drawable, rendered_or_reason
from plantain.audit.controls import naive
from plantain.audit.gate import figure_of, thresholds
from plantain.audit.images import AuditImage, cluster_of, images_in
from plantain.audit.planted_defects import NotApplicable
from plantain.findings import Taxonomy, load_taxonomy, why_not_shown
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.drawing.removing import remove
from plantain.offline.judge import measured
from plantain.offline.language import Intent, compose
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Direction, Finding, Licence, Observations, SourceImage, derive_seed
from plantain.roles import EncodedImage, JudgeRequest
from plantain.rubrics import MED_BANANA
from plantain.sources.brain_slice import UNKNOWN, estimate_slice
from plantain.sources.registry import UNPREPARED, finish

HALVES = ("development", "report")
NAIVE = ("blob", "dots", "grey wash")
ADDED = ("own", "wrong label", *NAIVE)

Answer = tuple[str, str, str, bool | None]
"""Image, finding, kind of edit, and whether it was accepted; None where it is undecided."""


def shared_images(root: Path, modality: str, half: str, wanted: int) -> list[AuditImage]:
    """Return images without findings of a data folder, in an order that their names do not tell."""
    if modality == "chest":
        folder = root / "nih-chest-xray/frontal"
        with (folder / "labels.csv").open() as table:
            rows = [
                (folder / r["file"], r["group"]) for r in csv.DictReader(table) if r["labels"] == "No Finding"
            ]
    else:
        rows = [(path, path.stem) for path in (root / "brain-tumor-mri/Training/notumor").glob("*.jpg")]
    rows = [row for row in rows if HALVES[stable_hash(row[1]) % 2] == half]
    rows.sort(key=lambda row: stable_hash(f"order {row[0].name}"))
    return [prepared(path, group, chest=modality == "chest") for path, group in rows[:wanted]]


def stable_hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)


def prepared(path: Path, group: str, *, chest: bool) -> AuditImage:
    data = path.read_bytes()
    pixels = decode(data)
    seems = estimate_slice(pixels)
    image = SourceImage(
        id=path.stem,
        dataset="shared",
        modality="chest_xray" if chest else "brain_mri",
        labels=(),
        licence=Licence.UNKNOWN,
        source_sha256=hashlib.sha256(data).hexdigest(),
        prepared_sha256="",
        geometry=UNPREPARED,
        group=group if chest else None,
        view="frontal" if chest else seems.view,
        projection="PA" if chest else "unknown",
        position="erect" if chest else "unknown",
        plane=UNKNOWN if chest else seems.plane,
        sequence=UNKNOWN if chest else seems.sequence,
    )
    return AuditImage(*finish(image, pixels))


def judged(
    original: bytes, edited: bytes, words: str, image: SourceImage, finding: Finding, direction: Direction
) -> bool | None:
    before, after = (EncodedImage(one, "image/jpeg") for one in (original, edited))
    seen = measured(JudgeRequest(image, before, after, words, finding, direction, MED_BANANA, 0))
    if not isinstance(seen, Observations):
        return None
    passed = [result.passed for result in seen.criteria.values()]
    return False if False in passed else (None if None in passed else True)


def answers(recipe: CleanEditRecipe, taxonomy: Taxonomy) -> Iterator[Answer]:
    """Yield every answer about one drawing; of what could not be made the reason as its kind."""
    finding, image = recipe.finding, recipe.source.image
    where = cluster_of(image)
    edit = rendered_or_reason(recipe)
    if isinstance(edit, str):
        yield where, finding.name, "not made", False
        return
    original, edited, seed = encode_source(edit.original), encode_jpeg(edit.edited), recipe.seed
    yield (
        where,
        finding.name,
        "own",
        judged(original, edited, edit.instruction, image, finding, Direction.ADD),
    )
    words = compose(Intent(finding.name, Direction.REMOVE), finding)
    drawn, real = encode_source(edit.edited), encode_jpeg(edit.original)
    shown = replace(image, synthetic=True)
    yield where, finding.name, "undone", judged(drawn, real, words, shown, finding, Direction.REMOVE)
    try:
        intent, rng = Intent(finding.name, Direction.REMOVE), np.random.default_rng(seed)
        removed = encode_jpeg(remove(decode(drawn), shown, finding, intent, rng).pixels)
        yield where, finding.name, "removed", judged(drawn, removed, words, shown, finding, Direction.REMOVE)
    except CannotShow:
        yield where, finding.name, "not removed", False
    limits = thresholds()
    for name in NAIVE:
        if finding.name not in limits.may_be.get(name, ()):
            try:
                naively = encode_jpeg(naive(name, edit, derive_seed(seed, name)))
            except NotApplicable:
                continue
            answer = judged(original, naively, edit.instruction, image, finding, Direction.ADD)
            yield where, finding.name, name, answer
    for other in taxonomy.targets(image.modality):
        if other.name == finding.name or limits.fits(image.modality, finding.name, other.name):
            continue
        if not why_not_shown(other, image):
            words = compose(Intent(other.name, Direction.ADD), other, phrasing=seed % 4)
            answer = judged(original, edited, words, image, other, Direction.ADD)
            yield where, finding.name, "wrong label", answer


def recipes(
    images: Sequence[AuditImage], taxonomy: Taxonomy, seed: int, each: int
) -> Iterator[CleanEditRecipe]:
    """Yield `each` drawings for each image, in turns over findings."""
    turns: Counter[str] = Counter()
    for source in images:
        image = source.image
        findings = [
            f for f in taxonomy.targets(image.modality) if f.name in drawable(taxonomy, image.modality)
        ]
        for _ in range(each if findings else 0):
            finding = findings[turns[image.modality] % len(findings)]
            turns[image.modality] += 1
            own = derive_seed(seed, image.id, finding.name)
            yield CleanEditRecipe(source, finding, Direction.ADD, own, f"{image.id} {finding.name}")


def show(rows: Sequence[Answer]) -> None:
    kinds = dict.fromkeys(kind for _, _, kind, _ in rows)
    for kind in kinds:
        own = [(where, accepted) for where, _, k, accepted in rows if k == kind]
        rate = figure_of((where, bool(accepted)) for where, accepted in own)
        undecided = sum(accepted is None for _, accepted in own)
        between = "" if rate.low is None else f" ({rate.low:.0%} to {rate.high:.0%})"
        print(
            f"{kind:<14} accepted {rate.value:.0%}{between}, undecided {undecided / len(own):.0%}, n {len(own)}"
        )
    by: dict[str, dict[str, list[bool | None]]] = defaultdict(lambda: defaultdict(list))
    for _, finding, kind, accepted in rows:
        by[finding][kind].append(accepted)
    for finding, found in sorted(by.items()):
        cells = (
            f"{kind} {sum(map(bool, one))}/{len(one)}"
            + (f" ({one.count(None)} undecided)" if None in one else "")
            for kind, one in found.items()
        )
        print(f"  {finding:<28}{', '.join(cells)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", help="package, chest, brain, a run or a catalogue")
    parser.add_argument("--data", type=Path, help="holds nih-chest-xray/frontal and brain-tumor-mri/Training")
    parser.add_argument("--half", choices=HALVES, default="report")
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--findings-each", type=int, default=2)
    parser.add_argument("--seed", type=int, default=18)
    options = parser.parse_args()
    taxonomy, rows = load_taxonomy(), list[Answer]()
    for name in options.sets:
        if name in ("chest", "brain"):
            images = shared_images(options.data, name, options.half, options.images)
        else:
            images = images_in(None if name == "package" else Path(name), taxonomy)
            images = images[: options.images]
        for number, recipe in enumerate(recipes(images, taxonomy, options.seed, options.findings_each), 1):
            rows += answers(recipe, taxonomy)
            print(f"{name}: {number} drawings", file=sys.stderr, end="\r")
    show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
