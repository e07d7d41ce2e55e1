"""What a messy study feeds, counted again from what was planted: numpy, scipy and scikit-learn, none of our functions.

Readers tie, cannot judge, change their minds, read half or nothing; training, repeats and anchors
are answered at the other end of the scale, so that any of them that leaked into a number would move it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from bench.scored_run import JUDGE, make_all, plain_scores
from bench.small_bench import small_bench
from fakes.commands import json_of, refused
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.journal import JournalReader
from plantain.review.people import agreement_with_people
from plantain.review.ratings import Ratings
from plantain.review.study import Case, Item, ItemKind, Study
from plantain.review.web.desk import slot_order
from review.study_on_paper import new_from

READERS = 5
HALF, NOTHING = 3, 4
"""Readers who answered every second item, and none."""


@dataclass
class Planted:
    """What each reader said last of each main item, by item; abstentions are left out."""

    study: Study
    answers: dict[tuple[int, str], Any] = field(default_factory=dict)

    def of(self, reader: int, source: str, model: str = "") -> Any:
        for (who, item), said in self.answers.items():
            block_item = self.study.by_item[item][1]
            same = self.study.by_case[block_item.case].source == source
            if who == reader and same and (not model or block_item.shown == (model,)):
                return said
        return None


def plant(
    study: Study,
    say: Callable[[np.random.Generator, int, Case, Item], Any],
    beside: Callable[[Item], Any],
    wrap: Callable[[Any], dict[str, Any]],
) -> Planted:
    """Fills a study: `say` for main items, `beside` for everything that must not count."""
    rng, planted = np.random.default_rng(11), Planted(study)
    ratings = Ratings.open(study)
    for number in range(READERS):
        reader, _ = ratings.invite()
        for place, item in enumerate(study.blocks[0].items):
            if number == NOTHING or (number == HALF and place % 2):
                continue
            slots = slot_order(study, item, reader.number) if item.shown else []
            main_item = item.kind is ItemKind.MAIN
            said = say(rng, number, study.by_case[item.case], item) if main_item else beside(item)
            told = [wrap(beside(item)), wrap(said)] if rng.random() < 0.3 else [wrap(said)]  # a changed mind
            if main_item and rng.random() < 0.12:
                told = [*told, {"cannot": "too dark"}]
            elif main_item:
                planted.answers[number, item.id] = said
            for turn, value in enumerate(told):
                ratings.save(reader.code, item.id, f"key{turn:05d}", "b1", slots, place, value, 900)
    ratings.close()
    kinds = {item.kind for item in study.blocks[0].items}
    assert {ItemKind.MAIN, ItemKind.REPEAT} <= kinds
    return planted


CHECKS = ("--training", "1", "--repeats", "0.4", "--anchors", "1")


def test_rank_is_scipys_mean_over_images(tmp_path: Path):
    """`bench rank --study`: Spearman and Kendall of a metric with the mean of the raters' ranks, image by image."""
    made = make_all(tmp_path, organs=("Skin",), per_organ=7)
    study = new_from(tmp_path / "s", made.run, "--task", "rate", "--rubric", "medebench", *CHECKS)
    criteria = dict(zip(("EA", "CP", "VQ"), (name for name, _ in study.blocks[0].criteria), strict=True))
    planted = plant(
        study,
        lambda rng, *_: {name: int(rng.integers(3, 7)) for name in criteria.values()},
        lambda _: dict.fromkeys(criteria.values(), 10),
        lambda said: {"scores": said},
    )
    told = json_of("bench", "rank", made.run, "--study", study.folder, "--judge", JUDGE)
    assert told["raters"] == ["R01", "R02", "R03", "R04"]  # R05 has read nothing
    rows = {(row["metric"], row["dimension"]): row for row in told["rows"]}
    models = told["models"]
    with BenchRun.open(made.run) as opened:
        arms = {arm.label: arm for arm in opened.arms.values()}
    samples = [sample.id for sample in Benchmark.load(made.bench).samples]
    for metric, stored, sign in (("EA", f"ea@{JUDGE}", 1), ("lpips", "lpips", -1)):
        for dimension, criterion in criteria.items():
            rho, tau = [], []
            for i, sample in enumerate(samples):
                ranks = []
                for reader in range(READERS):
                    said = [planted.of(reader, sample, model) for model in models]
                    seen = [n for n, one in enumerate(said) if one is not None]
                    line = np.full(len(models), np.nan)
                    if len(seen) > 1:
                        given = stats.rankdata([said[n][criterion] for n in seen])
                        line[seen] = (given - 1) / (len(seen) - 1)
                    ranks.append(line)
                known = np.isfinite(ranks).any(axis=0)
                people = np.nanmean(np.array(ranks)[:, known], axis=0) if known.any() else np.array([])
                scored = [plain_scores(arms[model], i, 0).get(stored) for model in models]
                values = np.array([np.nan if one is None else sign * one for one in scored])[known]
                both = np.isfinite(values)
                if both.sum() > 1:
                    rho.append(stats.spearmanr(values[both], people[both]).statistic)
                    tau.append(stats.kendalltau(values[both], people[both]).statistic)
            row = rows[metric, dimension]
            assert row["n"] == np.isfinite(rho).sum() == 6  # one of seven cases was the training
            assert row["spearman"] == pytest.approx(np.nanmean(rho), abs=1e-12)
            assert row["kendall"] == pytest.approx(np.nanmean(tau), abs=1e-12)


@pytest.fixture(scope="module")
def accepted(own_run: Path) -> tuple[Path, Planted, list[str]]:
    """A run whose edits readers accepted or rejected, criterion by criterion."""
    study = new_from(own_run.parent / "people", own_run, "--task", "accept", *CHECKS)
    names = [name for name, _ in study.blocks[0].criteria]
    planted = plant(
        study,
        lambda rng, *_: {name: bool(rng.random() < 0.6) for name in names},
        lambda item: dict.fromkeys(names, item.kind is not ItemKind.ANCHOR),
        lambda said: {"criteria": said, "codes": []},
    )
    return own_run, planted, names


def answers_by_source(planted: Planted) -> dict[str, list[dict[str, bool]]]:
    """Task -> what each reader who judged it said."""
    found: dict[str, list[dict[str, bool]]] = {}
    for (_, item), said in planted.answers.items():
        found.setdefault(planted.study.by_case[planted.study.by_item[item][1].case].source, []).append(said)
    return found


def test_the_card_has_scikit_learns_kappa(accepted):
    """What `judge audit --study` writes into a card: verdicts and the majority of readers; a tie is no majority."""
    run, planted, names = accepted
    told = agreement_with_people(planted.study.folder, run, "offline/instruments")
    people: dict[str, list[bool]] = {name: [] for name in ("", *names)}
    judge: dict[str, list[bool]] = {name: [] for name in ("", *names)}
    with JournalReader.open(run) as reader:
        for source, said in sorted(answers_by_source(planted).items()):
            last = [v for v in reader.verdicts(source) if v.verdict.judge == "offline/instruments"][-1]
            seen = {str(k): v.passed for k, v in last.verdict.observations.criteria.items()}
            most = {name: 2 * sum(one[name] for one in said) > len(said) for name in names}
            for name in names:
                people[name].append(most[name])
                judge[name].append(bool(seen[name]))
            people[""].append(all(most.values()))
            judge[""].append(all(seen[name] for name in names))
    assert told["people/people, ICC(2,1)"].kind == "icc"
    for name in ("", *names):
        figure = told["people/people" + (f", {name}" if name else "")]
        expected = cohen_kappa_score(people[name], judge[name])
        assert (figure.n, figure.kind) == (len(people[name]), "kappa")
        if np.isfinite(expected):
            assert figure.value == pytest.approx(expected, abs=1e-12)
        else:  # both said the same of every edit: there is nothing to agree about beyond chance
            assert figure.value is None


def test_readers_as_a_judge_are_their_majority(accepted):
    """`judge rejudge --judge people/STUDY`: each criterion by the majority; others are not applicable."""
    run, planted, names = accepted
    expected = answers_by_source(planted)
    for _ in range(2):  # a second time nothing is asked again, and the same is said
        rejudged = json_of("judge", "rejudge", run, "--judge", f"people/{planted.study.folder}")
        told = {one["judge"]: one for one in rejudged["judges"]}
        assert told["people/people"]["judged"] == len(expected)
    with JournalReader.open(run) as reader:
        found = {
            row.id: [v.verdict for v in reader.verdicts(row.id) if v.verdict.judge == "people/people"]
            for row in reader.tasks()
        }
    assert {source for source, said in found.items() if said} == set(expected)
    for source, said in expected.items():
        (verdict,) = found[source]
        for name in names:
            yes = sum(one[name] for one in said)
            given = next(v for k, v in verdict.observations.criteria.items() if str(k) == name)
            assert (given.passed, given.confidence) == (2 * yes > len(said), pytest.approx(yes / len(said)))
        assert verdict.qualified == all(2 * sum(one[n] for one in said) > len(said) for n in names)


def test_chosen_regions_are_what_the_rule_says(tmp_path: Path):
    """`bench prepare --study`: one reader's own, what both of two took in, SimpleITK's STAPLE of three and more."""
    itk = pytest.importorskip("SimpleITK")
    small_bench(tmp_path / "bench", 6, size=(96, 64))
    study = new_from(tmp_path / "s", tmp_path / "bench", "--task", "choose-roi", "--repeats", "0.5")

    def disc(rng: np.random.Generator, *_: object) -> np.ndarray:
        y, x = np.mgrid[:64, :96]
        return np.hypot(y - 30 - rng.normal(0, 2), x - 45 - rng.normal(0, 2)) < 14 + rng.normal(0, 1.5)

    def wrap(mask: np.ndarray) -> dict[str, Any]:
        data = cv2.imencode(".png", mask.astype(np.uint8) * 255)[1].tobytes()
        return {"proposal": None, "mask": base64.b64encode(data).decode()}

    corner = np.zeros((64, 96), bool)
    corner[:5, :5] = True
    planted = plant(study, disc, lambda _: corner, wrap)
    prepared = json_of("bench", "prepare", tmp_path / "bench", "--study", study.folder)
    samples = Benchmark.load(tmp_path / "bench").samples
    assert set(prepared["chosen"]) == {sample.id for sample in samples}
    refused("bench", "prepare", "--study", study.folder)
    counts = set()
    for sample in samples:
        masks = [m for r in range(READERS) if (m := planted.of(r, sample.id)) is not None]
        roi = cv2.imread(str(tmp_path / "bench" / str(sample.roi)), cv2.IMREAD_GRAYSCALE) > 0
        counts.add(min(3, len(masks)))
        if len(masks) < 3:
            assert np.array_equal(roi, np.logical_and.reduce(masks))
            continue
        assert f"STAPLE of {len(masks)}" in " ".join(sample.notes)
        union = np.logical_or.reduce(masks).astype(np.uint8)
        y, x = np.nonzero(cv2.dilate(union, np.ones((21, 21), np.uint8)))
        near = slice(y.min(), y.max() + 1), slice(x.min(), x.max() + 1)
        parts = [itk.GetImageFromArray(mask[near].astype(np.uint8)) for mask in masks]
        theirs, ours = itk.GetArrayFromImage(itk.STAPLE(parts)), roi[near]
        assert 2 * (ours & (theirs > 0.5)).sum() / (ours.sum() + (theirs > 0.5).sum()) > 0.97
        assert not roi[:5, :5].any()
    assert counts >= {3}
