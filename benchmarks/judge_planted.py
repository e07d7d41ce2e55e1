"""How far the offline judge can be trusted: planted defects and false alarms on pictures it was not tuned on.

Clean edits are what the procedural renderers draw, and their exact undoing; no judge chooses them. The held-out set
has other slices of the average brain, another person's brain slice, and other views (turned, cut, toned) of the one
chest radiograph and the one fundus photograph that arrive with the dependencies; seeds differ from those of tuning.
With --more FOLDER, pictures named <modality>/<name>.(png|jpg|jpeg) that no one tuned on join the set.

Run: python benchmarks/judge_planted.py [--pairs 100] [--amplitude strong] [--seed 20261123] [--judge M] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path

from rich.console import Console

from plantain.audit import AuditPlan, run_audit
from plantain.audit.pictures import TrialPicture, folder_pictures, package_pictures
from plantain.audit.rates import TrialAnswer
from plantain.cli.audit import print_report
from plantain.findings import load_taxonomy
from plantain.models.resolver import resolve_judge
from plantain.offline.workers import close_workers
from plantain.rubrics import MED_BANANA

FINDINGS = (
    "Pneumothorax",
    "Pleural Effusion",
    "Lung Lesion",
    "Cardiomegaly",
    "glioma",
    "meningioma",
    "AMD",
    "Diabetes",
    "Cataract",
)
"""The findings that the judge was tuned on; `--all-findings` takes every one that can be drawn."""
HELD_OUT_SEED = 20261123
"""A seed reports once: the misses of 20261121 and 20261122 have been looked at."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judge", default="offline/instruments")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--amplitude", choices=("weak", "strong"), default="strong")
    parser.add_argument("--seed", type=int, default=HELD_OUT_SEED)
    parser.add_argument("--split", choices=("held-out", "tuning"), default="held-out")
    parser.add_argument("--all-findings", action="store_true")
    parser.add_argument("--more", type=Path, help="folder of further pictures, by modality")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pictures: list[TrialPicture] = package_pictures(options.split)
    if options.more is not None:
        pictures += folder_pictures(options.more)
    plan = AuditPlan(
        options.pairs,
        options.pairs,
        options.amplitude,
        options.seed,
        options.split,
        findings=() if options.all_findings else FINDINGS,
    )
    begun = time.perf_counter()

    def progress(done: int, wanted: int) -> None:
        print(f"\r{done}/{wanted} answers, {time.perf_counter() - begun:.0f} s", end="", file=sys.stderr)

    judge = resolve_judge(options.judge)
    report, answers = asyncio.run(run_audit(judge, pictures, load_taxonomy(), MED_BANANA, plan, progress))
    close_workers()
    print(file=sys.stderr)
    if options.json:
        print(json.dumps(report.as_json(), indent=2))
        return
    print_report(report, Console(width=150))
    _show_misses(answers)


def _show_misses(answers: list[TrialAnswer]) -> None:
    """By defect and finding: what was missed, and which clean edits were called bad."""
    missed = Counter(
        (answer.defect, answer.modality, answer.finding, answer.direction)
        for answer in answers
        if answer.failed is not None and (not answer.caught if answer.violates else bool(answer.failed))
    )
    for (defect, modality, finding, direction), n in sorted(missed.items()):
        print(
            f"  {'false alarm' if defect == 'clean' else 'missed ' + defect}: {modality} {finding} {direction} x{n}"
        )


if __name__ == "__main__":
    main()
