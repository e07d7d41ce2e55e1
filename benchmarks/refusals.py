"""How many additions the offline editor refuses on real brain slices, and why.

Every finding that a slice is not labelled with is asked for on it, without a side or zone, but what no plan holds:
a pituitary tumour on a slice that ingest records as without sella. Beside it stands what was refused of all of them.
"Not in this slice" is said of a pituitary tumour where the editor finds no sella. All other reasons are the editor's
own limits. Slices are those of `instrument_card.py`'s halves; one of the 80 of the report half is among those that
the rules for plane, sequence and view were fitted to (`planes_and_sequences.csv`).

    python benchmarks/refusals.py --shared ../shared --half report --slices 20
    python benchmarks/refusals.py --shared ../shared --half report --slices 20 --told

`--told` gives sequence and plane of the slices of that half of which one could not be told, as they were read by eye
(`told_by_eye.csv`), as a person's labels.csv gives them; three of those nine are computed tomograms, which stay untold.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from instrument_card import HALVES, prepared, stable_hash
from plantain.audit.clean import renderers
from plantain.audit.gate import figure_of
from plantain.findings import load_taxonomy, out_of_view, why_not_shown
from plantain.offline.editor import render_instruction
from plantain.offline.language import Intent, compose
from plantain.offline.rendering import CannotShow
from plantain.pixels.decode import decode
from plantain.records import Direction, Finding, SourceImage, derive_seed
from plantain.sources.brain_slice import UNKNOWN, estimate_slice
from plantain.sources.brain_tumor_mri import SELLAR

TOLD = Path(__file__).with_name("told_by_eye.csv")
LABELS = ("notumor", "glioma", "meningioma", "pituitary")
NOT_THERE = "neither sella nor suprasellar cistern is in this slice"


def slices(root: Path, label: str, half: str, wanted: int) -> list[Path]:
    """So many slices of a label, in an order that their names do not tell."""
    found = [
        path
        for path in sorted((root / label).glob("*.jpg"))
        if half == "all" or HALVES[stable_hash(path.stem) % 2] == half
    ]
    return sorted(found, key=lambda path: stable_hash(f"order {path.name}"))[:wanted]


def refusal(data: bytes, image: SourceImage, finding: Finding, phrasing: int) -> str:
    """Why this finding is not added to this slice; "" where it is."""
    if obstacle := why_not_shown(finding, image):
        return obstacle
    words = compose(Intent(finding.name, Direction.ADD), finding, phrasing=phrasing)
    try:
        render_instruction(decode(data), words, image, derive_seed(1, image.id, finding.name))
    except CannotShow as reason:
        return str(reason).partition("; if you know it")[0]
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--half", choices=HALVES, default="report")
    parser.add_argument("--slices", type=int, default=20, help="of each label")
    parser.add_argument(
        "--told", action="store_true", help="with what was read by eye where it could not be told"
    )
    options = parser.parse_args()
    told = by_eye()
    tomograms = {Path(file).stem for file, row in told.items() if row["sequence"] == "CT"}
    findings = [one for one in load_taxonomy().of("brain_mri") if one.name in renderers("brain_mri")]
    reasons: Counter[str] = Counter()
    rows: list[tuple[str, str, str]] = []
    unplanned: list[tuple[str, str, str]] = []
    for label in LABELS:
        root = options.shared / "data/brain-tumor-mri/Training"
        for path in slices(root, label, options.half, options.slices):
            picture = prepared(path, path.stem, "brain")
            row = told.get(f"{label}/{path.name}")
            seen = picture.image
            if options.told and row is not None and path.stem not in tomograms:
                seen = replace(seen, sequence=row["sequence"], plane=row["plane"])
            view = UNKNOWN if label == SELLAR else estimate_slice(decode(path.read_bytes())).view
            image = replace(seen, view=view)
            for finding in findings:
                if finding.name != label:
                    phrasing = (len(rows) + len(unplanned)) % 4
                    why = refusal(picture.data, seen, finding, phrasing)
                    planned = not out_of_view(finding, image)
                    (rows if planned else unplanned).append((path.stem, finding.name, why))
                    reasons.update([why] * planned)
    for why, count in reasons.most_common():
        print(f"{count:5} {why or 'added'}")
    for name in ("", *(finding.name for finding in findings)):
        tell(name or "all", [row for row in rows if name in ("", row[1])])
    drawn = sum(not why for _, _, why in unplanned)
    print(f"not planned: {len(unplanned)}, of which the editor would have drawn {drawn}")
    tell("with those not planned", rows + unplanned)
    tell("but for computed tomograms", [row for row in rows if row[0] not in tomograms])
    tell("but for not in this slice", [row for row in rows if NOT_THERE not in row[2]])
    return 0


def by_eye() -> dict[str, dict[str, str]]:
    """Sequence and plane of slices, by label and file."""
    with TOLD.open() as table:
        return {row.pop("file"): row for row in csv.DictReader(table)}


def tell(name: str, rows: list[tuple[str, str, str]]) -> None:
    """The share that was refused, with its interval over slices."""
    share = figure_of((slice_, bool(why)) for slice_, _, why in rows)
    between = "too few slices" if share.low is None else f"{share.low:.0%} to {share.high:.0%}"
    print(
        f"{name:<28}refused {sum(bool(why) for _, _, why in rows)} of {len(rows)}: {share.value:.0%} ({between})"
    )


if __name__ == "__main__":
    sys.exit(main())
