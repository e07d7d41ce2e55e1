"""How often the offline judge passes edits of each finding: drawn, exactly undone, and removed by the editor.

"undone" takes an edited image back to its own original, so whatever the judge says against it is a false alarm. "added"
and "removed" are the procedural editor's own work: what fails there may be the editor's fault or the judge's. "empty"
hands the judge an unchanged image: passing it is a miss.

Where a finding cannot be drawn on a picture, the next one is taken: a sella is in few slices.

    python benchmarks/judge_findings.py [--seeds 6] [--more FOLDER] [--finding NAME] [--round 2]
                                         [--split tuning] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from plantain.audit.pictures import SPLITS, TrialPicture, folder_pictures, package_pictures
from plantain.findings import load_taxonomy, sides_on, why_not_shown, zones_on
from plantain.metrics.statistics.intervals import wilson
from plantain.offline.editor import render_instruction
from plantain.offline.judge import judge_encoded
from plantain.offline.language import Intent, compose
from plantain.offline.rendering import CannotShow
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Direction, Finding, Outcome, derive_seed
from plantain.rubrics import MED_BANANA, decide

WAYS = ("added", "undone", "removed", "empty")
LOOKS = (("moderate", "moderate"), ("large", "marked"), ("moderate", "marked"), ("small", "marked"))


def verdicts(
    finding: Finding, picture: TrialPicture, number: int, round: int
) -> Iterator[tuple[str, bool | None, str]]:
    """(way, passed, why not) of one drawing of a finding; None where it could not be drawn or found."""
    image, original = picture.image, picture.data
    rng = np.random.default_rng(derive_seed(7, finding.name, image.id, number))
    sides, zones = sides_on(finding, image), zones_on(finding, image)
    place = (
        sides[int(rng.integers(len(sides)))] if sides else None,
        zones[int(rng.integers(len(zones)))] if zones else None,
    )
    seed = derive_seed(8, finding.name, image.id, number)

    def words(way: Direction) -> str:
        return compose(Intent(finding.name, way, *place, *LOOKS[number % len(LOOKS)]), finding)

    def judged(before: bytes, after: bytes, way: Direction) -> tuple[bool | None, str]:
        seen = judge_encoded(before, after, words(way), image, finding, way, MED_BANANA)
        if isinstance(seen, Outcome):
            return False, seen.reason
        verdict = decide(seen, MED_BANANA, judge="offline/instruments", policy="all-pass", threshold=0.7)
        codes = {code for result in seen.criteria.values() for code in result.codes}
        return verdict.qualified, " ".join(sorted(codes))

    pixels = decode(original)
    try:
        edited = render_instruction(pixels, words(Direction.ADD), image, seed).pixels
    except CannotShow as reason:
        yield "added", None, str(reason)
        return
    ill = encode_jpeg(edited)
    yield "added", *judged(original, ill, Direction.ADD)
    yield "undone", *judged(ill, encode_jpeg(pixels), Direction.REMOVE)
    yield "empty", *judged(original, encode_jpeg(pixels), Direction.ADD)
    try:
        healed = render_instruction(decode(ill), words(Direction.REMOVE), image, seed + 1, round).pixels
    except CannotShow as reason:
        yield "removed", None, str(reason)
        return
    yield "removed", *judged(ill, encode_jpeg(healed), Direction.REMOVE)


def drawings(
    finding: Finding, pictures: Sequence[TrialPicture], wanted: int, round: int
) -> Iterator[list[tuple[str, bool | None, str]]]:
    """The verdicts of so many drawings; pictures are taken in turn, refusing ones count as tries until all refused."""
    turn = cycle(pictures)
    for number in range(wanted):
        for picture in islice(turn, len(pictures)):
            seen = list(verdicts(finding, picture, number, round))
            yield seen
            if seen[0][1] is not None:
                break
        else:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6, help="drawings of each finding")
    parser.add_argument("--more", type=Path, help="folder of further pictures, by modality")
    parser.add_argument("--finding", help="only this one")
    parser.add_argument("--round", type=int, default=1, help="of the loop, in which the editor removes")
    parser.add_argument("--split", choices=SPLITS, default="held-out")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pictures = package_pictures(options.split) + (folder_pictures(options.more) if options.more else [])
    rows = []
    for finding in (one for modality in load_taxonomy().modalities for one in load_taxonomy().of(modality)):
        own = [one for one in pictures if not why_not_shown(finding, one.image)]
        own = [one for one in own if one.image.modality == finding.modality]
        if finding.normal or not own or (options.finding and finding.name != options.finding):
            continue
        counted: dict[str, list[bool | None]] = defaultdict(list)
        why: dict[str, int] = defaultdict(int)
        for drawing in drawings(finding, own, options.seeds, options.round):
            for way, passed, reason in drawing:
                counted[way].append(passed)
                if passed is not (way != "empty") and way != "empty":
                    why[f"{way}: {reason[:60]}"] += 1
        row: dict[str, object] = {"finding": finding.name, "modality": finding.modality, "why": dict(why)}
        said = f"{finding.name:<27}"
        for way in WAYS:
            held = [one for one in counted[way] if one is not None]
            low, high = wilson(sum(held), len(held)) if held else (0.0, 1.0)
            row[way] = {
                "passed": sum(held),
                "judged": len(held),
                "not_shown": len(counted[way]) - len(held),
                "low": low,
                "high": high,
            }
            said += f"{way} {sum(held):>2} of {len(held):<2} ({low:.2f} to {high:.2f})  "
        rows.append(row)
        if not options.json:
            print(said + "; ".join(f"{reason} x{n}" for reason, n in why.items()), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
