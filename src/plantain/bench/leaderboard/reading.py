"""Read the scores of one or several runs of a benchmark, in one pass over each journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import orjson

from plantain.bench.generate.editors import BASELINES
from plantain.bench.generate.runfile import Arm, BenchRun
from plantain.bench.leaderboard.scores import Scores, is_baseline
from plantain.bench.score.judging import JUDGES
from plantain.bench.score.set_distances import stored_distances
from plantain.journal.cards import Standing, cards_of, standing_of
from plantain.journal.questions.benchmark import output_scores
from plantain.records import InputError
from plantain.rubrics import MEDEBENCH


def read_scores(*runs: BenchRun) -> Scores:
    """Read the scores of all current outputs of one or several open runs of one benchmark into one table.

    Baselines are read from the first run that has them. In later runs, a label that is taken gets the folder as suffix.

    Raises:
        InputError: runs of different benchmarks, or scores of one judge by different prompts or versions.
    """
    first = runs[0]
    for run in runs[1:]:
        if run.header.digest != first.header.digest:
            raise InputError(
                f"{run.run}: is of benchmark {run.header.name} ({run.header.digest[:12]}), {first.run} of "
                f"{first.header.name} ({first.header.digest[:12]}): one table needs runs of the same benchmark"
            )
    labels = _unique_labels(runs)
    arms = [
        replace(run.arms[old], label=new)
        for run, own in zip(runs, labels, strict=True)
        for old, new in own.items()
    ]
    baselines = {label: i for i, label in enumerate(BASELINES)}

    def place(arm: Arm) -> int:
        """Models come first in the given order, then baselines, copy-input first and ground-truth last."""
        return baselines.get(arm.label, len(baselines)) if is_baseline(arm) else -1

    scores = Scores(
        runs=tuple(run.reader.header.name for run in runs),
        benchmark=first.header.name,
        seed=first.reader.header.seed,
        samples=tuple(first.samples.values()),
        arms=tuple(sorted(arms, key=place)),
        standings=_standings(runs),
    )
    for number, (run, own) in enumerate(zip(runs, labels, strict=True)):
        scores.origins |= {new: (number, old) for old, new in own.items()}
        _add_scores(scores, run, own)
    return scores


def _unique_labels(runs: Sequence[BenchRun]) -> list[dict[str, str]]:
    """Return for each run the labels of its arms in the table, by those in the run."""
    taken: set[str] = set()
    folders = [run.run.name for run in runs]
    labels: list[dict[str, str]] = []
    for run in runs:
        folder = run.run.name if folders.count(run.run.name) == 1 else str(run.run)
        own = {
            label: f"{label} ({folder})" if label in taken else label
            for label, arm in run.arms.items()
            if not (is_baseline(arm) and label in taken)
        }
        taken |= set(own.values())
        labels.append(own)
    return labels


def _add_scores(scores: Scores, run: BenchRun, labels: Mapping[str, str]) -> None:
    """Add a run's scores of the arms in `labels`."""
    place = {sample.id: i for i, sample in enumerate(scores.samples)}
    arms = {old: scores.arm(new) for old, new in labels.items()}
    for one in output_scores(run.reader):
        arm = arms.get(one.arm)
        if arm is None or one.sample not in place:
            continue
        key = arm.label, one.metric
        if one.value is not None:
            blank = np.full((len(place), len(arm.grid)), np.nan)
            scores.outputs.setdefault(key, blank)[place[one.sample], one.output] = one.value
        elif one.output == 0:
            scores.missing.setdefault(key, Counter())[one.reason] += 1
    for row in stored_distances(run.reader):
        if row.arm in labels:
            scores.distances.append(replace(row, arm=labels[row.arm]))


def _standings(runs: Sequence[BenchRun]) -> dict[str, Standing]:
    """Return the cards of the judges that scored the runs. Raise InputError if a judge differs between runs."""
    found: dict[str, Standing] = {}
    asked: dict[str, tuple[str, BenchRun]] = {}
    for run in runs:
        cards = cards_of(run.reader.run)
        stored: list[dict[str, str]] = orjson.loads(run.reader.meta(JUDGES) or "[]")
        for label, fingerprint in {row["label"]: row["fingerprint"] for row in stored}.items():
            before, other = asked.setdefault(label, (fingerprint, run))
            if before != fingerprint:
                raise InputError(
                    f"{run.run}: judge {label} scored it with other prompts or another version than {other.run}: "
                    "their scores cannot be compared; score one of them again"
                )
            one = standing_of(cards, label.rpartition("/")[0], MEDEBENCH.name, fingerprint)
            if label not in found or one.card is not None:
                found[label] = one
    return found
