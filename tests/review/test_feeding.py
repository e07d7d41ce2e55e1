"""Exports of a study to other commands, imported ratings, sources of a study; and a messy study by hand.

The last is checked against the planted answers with numpy, scipy and scikit-learn, none of our functions. Readers tie,
cannot judge, change their minds (from the other end of the scale), read half or nothing.
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
from fakes.commands import json_of, printed, refused
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.cli.bench.rank import study_ratings
from plantain.journal import JournalReader
from plantain.review.people import agreement_with_people
from plantain.review.ratings import Ratings
from plantain.review.study import IMAGES, ORIGINAL, Case, Item, ReaderTask, Study, open_study
from plantain.review.web.desk import slot_order
from report.run_on_paper import LICENCES
from review.study_on_paper import MODELS, new_from, read_all, small_study


def test_ranks_of_each_dimension_become_its_own_ratings(tmp_path: Path):
    """The first model is ranked 1, 2 and 3 for EA, CP and VQ (MedEBench, table 3: a column for each)."""
    study = small_study(tmp_path / "s", ReaderTask.RANK, cases=3)
    shift = {block.id: number for number, block in enumerate(study.blocks)}
    read_all(
        study,
        2,
        lambda _, block, item, slots: {
            "ranks": [(MODELS.index(slot) + shift[block.id]) % 3 + 1 for slot in slots]
        },
    )
    found = study_ratings(study.folder, [case.source for case in study.cases], list(MODELS))
    assert found.raters == ("R01", "R02") and found.models == MODELS
    first = {name: set(table[..., 0].ravel()) for name, table in found.values.items()}
    assert first == {"EA": {-1.0}, "CP": {-2.0}, "VQ": {-3.0}}


def test_external_ratings_are_imported_once(tmp_path: Path):
    study = small_study(tmp_path / "s", ReaderTask.RATE, cases=2)
    names = [name for name, _ in study.blocks[0].criteria]
    rows = [",".join(["source", "model", *names])]
    rows += [",".join([case.source, MODELS[0], *"7777"]) for case in study.cases[:2]]
    (tmp_path / "ana.csv").write_text("\n".join(rows))
    for _ in range(2):
        assert json_of("review", "import", study.folder, tmp_path / "ana.csv") == {"imported": {"ana": 2}}
    ratings = Ratings.open(study)
    assert len(ratings.current()) == 2 and ratings.readers()[0].role == "imported"
    for before, after in [("7,7,7,7", "7,7,11,7"), (MODELS[0], "zebra"), ("7,7,7,7", "7,7,7,x")]:
        (tmp_path / "ben.csv").write_text("\n".join(rows).replace(before, after))
        assert "ben.csv: line 2" in refused("review", "import", study.folder, tmp_path / "ben.csv")
    assert len(ratings.current()) == 2
    ratings.close()


def test_a_study_is_made_from_a_release(own_run: Path, tmp_path: Path):
    """A study from a release has the same tasks, instructions and pixels as one from its run."""
    printed("export", own_run, "--to", tmp_path / "out", "--layout", "med-banana", *LICENCES)
    found = [
        new_from(tmp_path / f"s{number}", source, "--task", "accept")
        for number, source in enumerate((own_run, tmp_path / "out"))
    ]
    by_source = [{case.source: case for case in study.cases} for study in found]
    assert set(by_source[1]) <= set(by_source[0]) and len(by_source[1]) >= 4
    for source, case in by_source[1].items():
        other = by_source[0][source]
        assert (case.instruction, case.finding, case.size) == (other.instruction, other.finding, other.size)
        edited = [next(f for model, f in one.images.items() if model != ORIGINAL) for one in (case, other)]
        both = [cv2.imread(str(s.folder / IMAGES / f)) for s, f in zip(reversed(found), edited, strict=True)]
        assert np.array_equal(*both)


def test_a_study_is_made_from_a_benchmarks_run(tmp_path: Path):
    """Every sample with the first scored output of each arm; the pixels are those of the run's blobs."""
    made = make_all(tmp_path, organs=("Skin",), per_organ=3)
    data = json_of("review", "new", tmp_path / "s", "--from", made.run, "--task", "pair,rate")
    study = open_study(tmp_path / "s")
    assert (
        data["cases"] == 3 and len(study.models) >= 2 and {case.stratum for case in study.cases} == {"Skin"}
    )
    with BenchRun.open(made.run) as opened:
        assert set(study.models) <= set(opened.arms)
        arm = study.models[0]
        outputs = {output.sample_id: output for output in opened.scored(arm) if output.edited}
        for case in study.cases:
            if arm in case.images:
                ours = cv2.imread(str(study.folder / IMAGES / case.images[arm]))
                theirs = cv2.imdecode(np.frombuffer(opened.read(outputs[case.source]), np.uint8), 1)
                assert np.array_equal(ours, theirs)


READERS = 5
HALF, NOTHING = 3, 4
"""Readers who answered every second item, and none."""


@dataclass
class Planted:
    """The last answer of each reader to each item, by item; abstentions are left out."""

    study: Study
    answers: dict[tuple[int, str], Any] = field(default_factory=dict)

    def of(self, reader: int, source: str, model: str = "") -> Any:
        for (who, item), answer in self.answers.items():
            block_item = self.study.by_item[item][1]
            same = self.study.by_case[block_item.case].source == source
            if who == reader and same and (not model or block_item.shown == (model,)):
                return answer
        return None


def plant(
    study: Study,
    say: Callable[[np.random.Generator, int, Case, Item], Any],
    other: Callable[[Item], Any],
    wrap: Callable[[Any], dict[str, Any]],
) -> Planted:
    """Fill a study: `say` answers items, `other` makes answers that are replaced and must not count."""
    rng, planted = np.random.default_rng(11), Planted(study)
    ratings = Ratings.open(study)
    for number in range(READERS):
        reader, _ = ratings.invite()
        for place, item in enumerate(study.blocks[0].items):
            if number == NOTHING or (number == HALF and place % 2):
                continue
            slots = slot_order(study, item, reader.number) if item.shown else []
            answer = say(rng, number, study.by_case[item.case], item)
            sent = [wrap(other(item)), wrap(answer)] if rng.random() < 0.3 else [wrap(answer)]  # mind changed
            if rng.random() < 0.12:
                sent = [*sent, {"cannot": "too dark"}]
            else:
                planted.answers[number, item.id] = answer
            for turn, value in enumerate(sent):
                ratings.save(reader.code, item.id, f"key{turn:05d}", "b1", slots, place, value, 900)
    ratings.close()
    return planted


def test_rank_equals_scipys_mean_over_images(tmp_path: Path):
    """`bench rank --study`: Spearman and Kendall of a metric with the mean of the raters' ranks, image by image."""
    made = make_all(tmp_path, organs=("Skin",), per_organ=6)
    study = new_from(tmp_path / "s", made.run, "--task", "rate", "--rubric", "medebench")
    criteria = dict(zip(("EA", "CP", "VQ"), (name for name, _ in study.blocks[0].criteria), strict=True))
    planted = plant(
        study,
        lambda rng, *_: {name: int(rng.integers(3, 7)) for name in criteria.values()},
        lambda _: dict.fromkeys(criteria.values(), 10),
        lambda scores: {"scores": scores},
    )
    ranked = json_of("bench", "rank", made.run, "--study", study.folder, "--judge", JUDGE)
    assert ranked["raters"] == ["R01", "R02", "R03", "R04"]  # R05 has read nothing
    rows = {(row["metric"], row["dimension"]): row for row in ranked["rows"]}
    models = ranked["models"]
    with BenchRun.open(made.run) as opened:
        arms = {arm.label: arm for arm in opened.arms.values()}
    samples = [sample.id for sample in Benchmark.load(made.bench).samples]
    for metric, stored, sign in (("EA", f"ea@{JUDGE}", 1), ("lpips", "lpips", -1)):
        for dimension, criterion in criteria.items():
            rho = []
            for i, sample in enumerate(samples):
                ranks = []
                for reader in range(READERS):
                    scores = [planted.of(reader, sample, model) for model in models]
                    seen = [n for n, one in enumerate(scores) if one is not None]
                    line = np.full(len(models), np.nan)
                    if len(seen) > 1:
                        given = stats.rankdata([scores[n][criterion] for n in seen])
                        line[seen] = (given - 1) / (len(seen) - 1)
                    ranks.append(line)
                known = np.isfinite(ranks).any(axis=0)
                people = np.nanmean(np.array(ranks)[:, known], axis=0) if known.any() else np.array([])
                scored = [plain_scores(arms[model], i, 0).get(stored) for model in models]
                values = np.array([np.nan if one is None else sign * one for one in scored])[known]
                both = np.isfinite(values)
                if both.sum() > 1:
                    rho.append(stats.spearmanr(values[both], people[both]).statistic)
            row = rows[metric, dimension]
            assert row["n"] == np.isfinite(rho).sum() == 6
            assert row["spearman"] == pytest.approx(np.nanmean(rho), abs=1e-12)


@pytest.fixture(scope="module")
def accepted(own_run: Path) -> tuple[Path, Planted, list[str]]:
    """A run whose edits readers accepted or rejected, criterion by criterion."""
    study = new_from(own_run.parent / "people", own_run, "--task", "accept")
    names = [name for name, _ in study.blocks[0].criteria]
    planted = plant(
        study,
        lambda rng, *_: {name: bool(rng.random() < 0.6) for name in names},
        lambda item: dict.fromkeys(names, True),
        lambda criteria: {"criteria": criteria, "codes": []},
    )
    return own_run, planted, names


def answers_by_source(planted: Planted) -> dict[str, list[dict[str, bool]]]:
    """Task -> the answers of all readers who judged it."""
    found: dict[str, list[dict[str, bool]]] = {}
    for (_, item), answer in planted.answers.items():
        found.setdefault(planted.study.by_case[planted.study.by_item[item][1].case].source, []).append(answer)
    return found


def test_the_card_has_scikit_learns_kappa(accepted):
    """The card of `judge audit --study` compares verdicts with the majority of readers; a tie is not a majority."""
    run, planted, names = accepted
    agreement = agreement_with_people(planted.study.folder, run, "offline/instruments")
    people, judge = list[bool](), list[bool]()
    with JournalReader.open(run) as reader:
        for source, answers in sorted(answers_by_source(planted).items()):
            last = [v for v in reader.verdicts(source) if v.verdict.judge == "offline/instruments"][-1]
            seen = {str(k): v.passed for k, v in last.verdict.observations.criteria.items()}
            people.append(all(2 * sum(one[name] for one in answers) > len(answers) for name in names))
            judge.append(all(seen[name] for name in names))
    figure, expected = agreement["people/people"], cohen_kappa_score(people, judge)
    assert (figure.n, figure.kind) == (len(people), "kappa")
    assert figure.value == (pytest.approx(expected, abs=1e-12) if np.isfinite(expected) else None)


def test_readers_as_a_judge_are_their_majority(accepted):
    """`judge rejudge --judge people/STUDY`: each criterion by the majority; others are not applicable."""
    run, planted, names = accepted
    expected = answers_by_source(planted)
    for _ in range(2):  # a second call asks nothing again and gives the same result
        rejudged = json_of("judge", "rejudge", run, "--judge", f"people/{planted.study.folder}")
        judges = {one["judge"]: one for one in rejudged["judges"]}
        assert judges["people/people"]["judged"] == len(expected)
    with JournalReader.open(run) as reader:
        found = {
            row.id: [v.verdict for v in reader.verdicts(row.id) if v.verdict.judge == "people/people"]
            for row in reader.tasks()
        }
    assert {source for source, verdicts in found.items() if verdicts} == set(expected)
    for source, votes in expected.items():
        (verdict,) = found[source]
        for name in names:
            yes = sum(one[name] for one in votes)
            given = next(v for k, v in verdict.observations.criteria.items() if str(k) == name)
            assert (given.passed, given.confidence) == (2 * yes > len(votes), pytest.approx(yes / len(votes)))
        assert verdict.qualified == all(2 * sum(one[n] for one in votes) > len(votes) for n in names)


def test_chosen_regions_follow_the_rule(tmp_path: Path):
    """`bench prepare --study`: one reader's own, what both of two took in, SimpleITK's vote of three and more."""
    itk = pytest.importorskip("SimpleITK")
    small_bench(tmp_path / "bench", 6, size=(96, 64))
    study = new_from(tmp_path / "s", tmp_path / "bench", "--task", "choose-roi")

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
        assert f"majority of {len(masks)}" in " ".join(sample.notes)
        parts = [itk.GetImageFromArray(mask.astype(np.uint8)) for mask in masks]
        assert np.array_equal(roi, itk.GetArrayFromImage(itk.LabelVoting(parts, 0)) == 1)
        assert not roi[:5, :5].any()
    assert counts >= {3}
