"""The offline judge's card on any set of pictures: how often it accepts what is right, and what is not.

Every edit is drawn on a real picture: by plantain's own editor ("own"), by its exact undoing ("undone"), by naive
editors (blob, dots, grey wash), and the own edit asked for under every other finding ("wrong label"). Of each edit one
that is accepted and one that is rejected are judged again after JPEG 75, a resize and back, one pixel and three grey
levels, which carry no meaning. What is unscored counts as not accepted. Intervals are over pictures.

    python benchmarks/instrument_card.py package
    python benchmarks/instrument_card.py chest --shared ../shared --half report --pictures 60
    python benchmarks/instrument_card.py brain --shared ../shared --half report --pictures 60
    python benchmarks/instrument_card.py FOLDER          # <modality>/<name>.png
    python benchmarks/instrument_card.py brain chest package --skip 30 --robust 100

The last judges nothing but so many accepted and rejected edits, of all sets in turns, and again what carries no meaning
of them.

The shared pictures are halved by the hash of their patient, or of their file where no patient is told: signs are
developed on "development" and shown on "report".
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from plantain.audit.clean import CleanEditRecipe, rendered_or_reason, renderers
from plantain.audit.controls import REENCODED, naive
from plantain.audit.gate import figure_of, thresholds
from plantain.audit.pictures import TrialPicture, cluster_of, folder_pictures, package_pictures
from plantain.audit.planted_defects import CleanEdit, NotApplicable
from plantain.findings import load_taxonomy, why_not_shown
from plantain.offline.judge import judge_encoded
from plantain.offline.language import Intent, compose
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_source
from plantain.records import Direction, Finding, Licence, Observations, SourceImage, derive_seed
from plantain.rubrics import MED_BANANA, decide
from plantain.sources.brain_slice import UNKNOWN, estimate_slice
from plantain.sources.entries import UNPREPARED, finish

NAIVE = ("blob", "dots", "grey wash")
HARMLESS = ("jpeg 75", "resized and back", "1 pixel", "3 grey levels")
OWN, UNDONE, WRONG = "own", "undone", "wrong label"
HALVES = ("development", "report", "all")


@dataclass(frozen=True, slots=True)
class Said:
    """What the judge said of one edit: `passed` is None where it is unscored, "" is no reason."""

    picture: str
    finding: str
    kind: str
    detail: str
    passed: bool | None
    why: str


def shared_pictures(root: Path, modality: str, half: str, wanted: int, ill: bool) -> list[TrialPicture]:
    """Pictures of ../shared with findings or without, in an order that their names do not tell."""
    if modality == "chest":
        folder = root / "data/nih-chest-xray/frontal"
        with (folder / "labels.csv").open() as table:
            rows = [
                (folder / row["file"], row["group"])
                for row in csv.DictReader(table)
                if (row["labels"] != "No Finding") is ill
            ]
    else:
        training = root / "data/brain-tumor-mri/Training"
        rows = [
            (path, path.stem)
            for path in sorted(training.glob("*/*.jpg"))
            if (path.parent.name != "notumor") is ill
        ]
    rows = [row for row in rows if half == "all" or HALVES[stable_hash(row[1]) % 2] == half]
    rows.sort(key=lambda row: stable_hash(f"order {row[0].name}"))
    return [prepared(path, group, modality) for path, group in rows[:wanted]]


def stable_hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)


def prepared(path: Path, group: str, modality: str) -> TrialPicture:
    data, chest = path.read_bytes(), modality == "chest"
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
        view="frontal" if chest else "unknown",
        projection="PA" if chest else "unknown",
        position="erect" if chest else "unknown",
        plane=UNKNOWN if chest else seems.plane,
        sequence=UNKNOWN if chest else seems.sequence,
    )
    return TrialPicture(*finish(image, pixels))


def judged(
    original: bytes, edited: bytes, words: str, edit: CleanEdit, finding: Finding
) -> tuple[bool | None, str]:
    """Whether the edit is accepted, None where a criterion is unscored, and what failed."""
    seen = judge_encoded(original, edited, words, edit.image, finding, edit.direction, MED_BANANA)
    if not isinstance(seen, Observations):
        return None, f"{seen.kind.value}: {seen.reason}"
    results = seen.criteria.values()
    if any(result.passed is None for result in results) and not any(
        result.passed is False for result in results
    ):
        return None, "; ".join(result.evidence for result in results if result.passed is None)
    verdict = decide(seen, MED_BANANA, judge="offline/instruments", policy="all-pass", threshold=0.7)
    broken = [
        f"{name}: {'/'.join(result.codes)}: {result.evidence}"
        for name, result in seen.criteria.items()
        if not result.passed
    ]
    return verdict.qualified, " | ".join(broken)


def answers(
    recipe: CleanEditRecipe, others: Sequence[Finding], again: bool, wanted: set[bool] | None = None
) -> Iterator[Said]:
    """Every answer about one recipe; with `wanted` only until these verdicts were judged again."""
    cluster = cluster_of(recipe.picture.image)
    edit = rendered_or_reason(recipe)
    own = OWN if recipe.direction is Direction.ADD else UNDONE
    if isinstance(edit, str):
        yield Said(cluster, recipe.finding.name, "not made", own, None, edit)
        return
    original, clean = encode_source(edit.original), encode_jpeg(edit.edited)
    trials = [(own, "", clean, edit.instruction, recipe.finding)]
    if recipe.direction is Direction.ADD:
        limits = thresholds()
        for name in NAIVE:
            if recipe.finding.name in limits.may_be.get(name, ()):
                continue
            try:
                drawn = naive(name, edit, derive_seed(recipe.seed, name))
            except NotApplicable:
                continue
            trials.append((name, "", encode_jpeg(drawn), edit.instruction, recipe.finding))
        for other in others:
            modality = recipe.picture.image.modality
            same = other.name == recipe.finding.name or limits.fits(modality, recipe.finding.name, other.name)
            if not same and not why_not_shown(other, edit.image):
                words = compose(Intent(other.name, edit.direction), other, phrasing=recipe.seed % 4)
                trials.append((WRONG, other.name, clean, words, other))
    kept: set[bool] = set()
    for kind, detail, edited, words, finding in trials:
        if wanted is not None and not wanted - kept:
            return
        passed, why = judged(original, edited, words, edit, finding)
        yield Said(cluster, recipe.finding.name, kind, detail, passed, why)
        verdict = bool(passed)
        if not again or verdict in kept or (verdict and kind not in (OWN, UNDONE)):
            continue
        if wanted is not None and verdict not in wanted:
            continue
        kept.add(verdict)
        for name in HARMLESS:
            harmless = encode_jpeg(REENCODED[name](decode(edited)))
            then, why = judged(original, harmless, words, edit, finding)
            row = f"{'accepted' if verdict else 'rejected'} {name}"
            yield Said(cluster, recipe.finding.name, row, kind, bool(then) is verdict, why)


def recipes(
    pictures: Sequence[TrialPicture], seed: int, per: int, only: Sequence[str]
) -> Iterator[CleanEditRecipe]:
    """So many findings of each picture, in turns over findings; every third one is an exact undoing."""
    taxonomy = load_taxonomy()
    counted: dict[str, int] = defaultdict(int)
    for picture in pictures:
        modality = picture.image.modality
        findings = [one for one in taxonomy.of(modality) if one.name in renderers(modality)]
        findings = [one for one in findings if not only or one.name in only]
        for _ in range(per if findings else 0):
            turn = counted[modality]
            counted[modality] += 1
            finding = findings[turn % len(findings)]
            way = Direction.REMOVE if turn // len(findings) % 3 == 2 else Direction.ADD
            own = derive_seed(seed, picture.image.id, finding.name, way.value)
            yield CleanEditRecipe(
                picture, finding, way, own, f"{picture.image.id} {finding.name} {way.value}"
            )


def robust(
    sets: Sequence[Sequence[TrialPicture]], seed: int, each: int, tell_of: Callable[[list[Said]], None]
) -> list[Said]:
    """Answers about so many accepted and so many rejected edits, from the sets in turns."""
    taxonomy, counted = load_taxonomy(), {True: 0, False: 0}
    rows: list[Said] = []
    for turn in zip_longest(*(recipes(pictures, seed, 1, ()) for pictures in sets)):
        for recipe in filter(None, turn):
            wanted = {verdict for verdict, n in counted.items() if n < each}
            if not wanted:
                return rows
            modality = recipe.picture.image.modality
            others = [one for one in taxonomy.of(modality) if one.name in renderers(modality)]
            said = list(answers(recipe, others, True, wanted))
            for verdict in wanted:
                name = f"{'accepted' if verdict else 'rejected'} {HARMLESS[0]}"
                counted[verdict] += sum(row.kind == name for row in said)
            rows += said
            tell_of(rows)
    return rows


def card(rows: Sequence[Said]) -> dict[str, dict[str, float | int | None]]:
    """Shares with intervals over pictures, by kind."""
    found: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for row in rows:
        if row.kind != "not made":
            found[row.kind].append((row.picture, bool(row.passed)))
            if row.passed is not None and row.kind in (OWN, UNDONE):
                found[f"{row.kind}, scored"].append((row.picture, row.passed))
    told = {}
    for kind, held in sorted(found.items()):
        rate = figure_of(held)
        told[kind] = {
            "rate": rate.value,
            "low": rate.low,
            "high": rate.high,
            "n": len(held),
            "pictures": len({p for p, _ in held}),
        }
    return told


def tell(rows: Sequence[Said]) -> None:
    for kind, figures in card(rows).items():
        low, high = figures["low"], figures["high"]
        between = "too few pictures" if low is None else f"{low:.0%} to {high:.0%}"
        print(
            f"{kind:<28}{figures['rate']:>6.0%}  {between}  n {figures['n']}, pictures {figures['pictures']}"
        )
    print(f"{'not made':<28}{sum(row.kind == 'not made' for row in rows)}")
    by: dict[str, dict[str, list[bool | None]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.kind in (OWN, UNDONE, WRONG, *NAIVE, "not made"):
            by[row.finding][row.kind].append(row.passed)
    for finding, kinds in sorted(by.items()):
        said = [
            f"{kind} {sum(map(bool, held))}/{len(held)}"
            + (f" ({held.count(None)} unscored)" if None in held and kind != "not made" else "")
            for kind, held in sorted(kinds.items())
        ]
        print(f"  {finding:<28}{', '.join(said)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", help="package, chest, brain, or a folder <modality>/<name>.png")
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--half", choices=HALVES, default="report")
    parser.add_argument("--pictures", type=int, default=60)
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many of the shared ones")
    parser.add_argument("--ill", action="store_true", help="the shared ones that have findings of their own")
    parser.add_argument("--findings-each", type=int, default=2)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--finding", action="append", default=[])
    parser.add_argument("--no-again", action="store_true", help="leave out what carries no meaning")
    parser.add_argument(
        "--robust", type=int, help="accepted and rejected edits to judge again, and nothing else"
    )
    parser.add_argument("--out", type=Path, help="file for every answer, a JSON object a line")
    options = parser.parse_args()
    sets = [pictures_of(name, options) for name in options.sets]

    def keep(rows: list[Said]) -> None:
        if options.out:
            options.out.write_text("".join(json.dumps(_row(row)) + "\n" for row in rows))

    rows: list[Said] = []
    if options.robust:
        rows = robust(sets, options.seed, options.robust, keep)
    else:
        taxonomy, pictures = load_taxonomy(), [picture for one in sets for picture in one]
        for number, recipe in enumerate(
            recipes(pictures, options.seed, options.findings_each, options.finding)
        ):
            modality = recipe.picture.image.modality
            others = [one for one in taxonomy.of(modality) if one.name in renderers(modality)]
            rows += answers(recipe, others, not options.no_again)
            if number % 10 == 9:
                print(f"{number + 1} edits", file=sys.stderr, flush=True)
            keep(rows)
    tell(rows)
    return 0


def pictures_of(name: str, options: argparse.Namespace) -> list[TrialPicture]:
    if name in ("chest", "brain"):
        wanted = options.skip + options.pictures
        return shared_pictures(options.shared, name, options.half, wanted, options.ill)[options.skip :]
    pictures = package_pictures("held-out") if name == "package" else folder_pictures(Path(name))
    return list(pictures)


def _row(row: Said) -> dict[str, object]:
    return {name: getattr(row, name) for name in Said.__slots__}


if __name__ == "__main__":
    sys.exit(main())
