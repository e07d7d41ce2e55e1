"""How well plane and sequence of brain slices are told, and whether they lie off the sella, against slices read by eye.

`planes_and_sequences.csv` lists the slices (file names of ../shared/data/brain-tumor-mri/Training) with plane and
sequence, read by eye on contact sheets by one non-clinician before the rules were fitted to them; "unsure" where it
could not be read. `sella`, which was read later, says whether the sella or the cistern above it is in
the slice; "yes" for slices labelled pituitary, whose tumour lies there. Only "without sella" is ever recorded.
Slices of one fold are told by a rule that was fitted to the others; --fit writes the rule fitted to all of them.
`planes_and_sequences_again.csv` has 98 others, to which nothing was fitted: with --as-shipped they show what the
shipped rule does. The collection holds near duplicates and tells no patients, so slices of one patient may stand on
both sides.

    python benchmarks/planes_and_sequences.py [--shared ../shared] [--fit] [--table planes_and_sequences_again.csv]
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from plantain.metrics.statistics.intervals import wilson
from plantain.pixels.decode import decode
from plantain.sources.brain_slice import (
    PLANES,
    RULES,
    SEQUENCES,
    UNKNOWN,
    VIEWS,
    LinearRule,
    fitted,
    measure_slice,
)

HERE = Path(__file__).parent
FOLDS = 10
LEAST = {"plane": 0.6, "sequence": 0.6, "view": 0.7}
RIDGE = {"plane": 0.03, "sequence": 0.02, "view": 0.1}
VIEW = dict(zip(("yes", "no"), VIEWS, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--table", type=Path, default=HERE / "planes_and_sequences.csv")
    parser.add_argument("--fit", action="store_true", help="write the rules")
    parser.add_argument("--as-shipped", action="store_true", help="use the shipped rules instead of folds")
    options = parser.parse_args()
    root = options.shared / "data/brain-tumor-mri/Training"
    rows = list(csv.DictReader(options.table.open()))
    measured = [measure_slice(decode((root / row["file"]).read_bytes())) for row in rows]
    print(f"{len(rows)} slices, {sum(one is None for one in measured)} without a head that stands out")
    for row in rows:
        row["view"] = VIEW.get(row["sella"], "unsure")
    shipped = json.loads(RULES.read_text()) if options.as_shipped else {}
    written = {}
    for name, classes, which in (("plane", PLANES, 0), ("sequence", SEQUENCES, 0), ("view", VIEWS, 1)):
        kept = [
            (m[which], row[name], row["file"])
            for m, row in zip(measured, rows, strict=True)
            if m is not None and row[name] in classes
        ]
        values, truth = np.array([m for m, _, _ in kept]), [t for _, t, _ in kept]
        if options.as_shipped:
            as_written = shipped[name]
            own = LinearRule(
                tuple(as_written["classes"]),
                np.array(as_written["middle"]),
                np.array(as_written["spread"]),
                np.array(as_written["weights"]),
                as_written["least"],
            )
            said = [own.classify(one)[0] for one in values]
        else:
            said = _by_folds(name, classes, values, truth, [f for _, _, f in kept])
        told = [(s, t) for s, t in zip(said, truth, strict=True) if s != UNKNOWN]
        right = sum(s == t for s, t in told)
        low, high = wilson(right, len(told))
        print(
            f"{name}: told {len(told)} of {len(kept)}, right {right}, {right / len(told):.3f} ({low:.3f} to {high:.3f})"
        )
        for one in classes:
            print(
                f"  {one}: "
                + ", ".join(
                    f"{s} {sum(a == s and b == one for a, b in zip(said, truth, strict=True))}"
                    for s in (*classes, UNKNOWN)
                )
            )
        rule = fitted(values, classes, truth, least=LEAST[name], ridge=RIDGE[name])
        written[name] = {
            "classes": rule.classes,
            "least": rule.least,
            "middle": np.round(rule.middle, 4).tolist(),
            "spread": np.round(rule.spread, 4).tolist(),
            "weights": np.round(rule.weights, 4).tolist(),
        }
    if options.fit:
        RULES.write_text(json.dumps(written) + "\n")
    return 0


def _by_folds(
    name: str, classes: tuple[str, ...], values: np.ndarray, truth: list[str], files: list[str]
) -> list[str]:
    folds = np.array([int(hashlib.sha256(file.encode()).hexdigest()[:8], 16) % FOLDS for file in files])
    said = [UNKNOWN] * len(truth)
    for fold in range(FOLDS):
        rest = folds != fold
        rule = fitted(
            values[rest],
            classes,
            [t for t, r in zip(truth, rest, strict=True) if r],
            least=LEAST[name],
            ridge=RIDGE[name],
        )
        for index in np.flatnonzero(~rest):
            said[int(index)] = rule.classify(values[index])[0]
    return said


if __name__ == "__main__":
    sys.exit(main())
