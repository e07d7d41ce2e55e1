"""Scoring a bench run: every output once, only changed parts again, and every number traceable."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.small_bench import SHY, Means, scores, small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.editors import BASELINES
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.tables import make_table
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import PIXEL_METRICS, ScoreRequest, score_run
from plantain.cli import main
from plantain.metrics.metric import Networks
from plantain.metrics.pixelwise import PSNR
from plantain.privacy.rapid_text import why_no_reader
from plantain.records import CriterionResult, InputError, Observations, Outcome, OutcomeKind, Usage
from plantain.roles import JudgeRequest, Reply, failed
from plantain.rubrics import MEDEBENCH, rubric_named
from plantain.runs.progress import RunSummary
from plantain.runs.settings_file import Limits
from plantain.runs.terms import Terms

EXAMPLES = Path(__file__).parents[3] / "examples"
ARMS = (*BASELINES, "planted/exact", "planted/half", "planted/repainted", SHY)
IMAGES = 3 * len(ARMS) - 1
"""One planted editor refuses one of three samples."""


def run_score(folder: Path, request: ScoreRequest, **more: Any) -> RunSummary:
    bench = Benchmark.load(folder / "bench")
    return asyncio.run(
        score_run(folder / "run", bench, replace(request, networks=request.networks or Networks()), **more)
    )


class SpokenJudge:
    """A judge whose answers a test decides; it records its requests."""

    name = "spoken/judge"
    fingerprint = "1"

    def __init__(self, answer: Callable[[JudgeRequest], Observations | Outcome]) -> None:
        self._answer = answer
        self.seen: list[JudgeRequest] = []

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        self.seen.append(request)
        answer = self._answer(request)
        usage = Usage(served_model="spoken-1")
        return failed(answer, usage) if isinstance(answer, Outcome) else Reply(answer, usage=usage)


def spoken(draws: int = 1, **more: Any) -> ScoreRequest:
    """Request one fast metric, and the spoken judge by the prompt."""
    return ScoreRequest(["psnr"], (JudgeName("spoken/judge", "P", draws=draws, **more),))


def report(ea: float, cp: float = 8, vq: float = 6) -> Observations:
    numbers = zip(MEDEBENCH.criteria, (ea, cp, vq), strict=True)
    results = {c.name: CriterionResult(value >= 7, value=value) for c, value in numbers}
    return Observations(results, reason="a reason", differences="a difference")


def test_every_output_has_every_score_or_a_reason(folder: Path) -> None:
    summary = run_score(folder, ScoreRequest())
    pixel = len(PIXEL_METRICS) + (not why_no_reader())
    assert summary.measured == pixel * (IMAGES + 1)
    found = scores(folder / "run")
    for metric in PIXEL_METRICS:
        assert found[SHY, "2", metric] == (None, "refused: not this one")
    assert found["copy-input", "1", "masked_ssim"][0] == found["planted/exact", "1", "masked_ssim"][0] == 1.0
    assert (found["planted/repainted", "1", "masked_ssim"][0] or 1.0) < 0.97
    with BenchRun.open(folder / "run") as run:
        for _, outputs in run.by_sample():
            for output in outputs:
                rows = run.reader.scores(output.task_id, output.generation)
                assert {row.detail["blob"] for row in rows} == {output.edited}
                assert all(row.detail["version"] for row in rows)


def test_only_a_new_metric_or_a_new_version_is_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_score(folder, ScoreRequest(metrics=["psnr"]))
    assert run_score(folder, ScoreRequest(metrics=["psnr", "ssim"])).measured == IMAGES + 1
    learned = ScoreRequest(networks=Networks(clip=Means("mean-colour")), metrics=["clip_isim"])
    assert run_score(folder, learned).measured == IMAGES + 1
    found = scores(folder / "run")
    assert found["planted/exact", "1", "clip_isim:mean-colour"][0] == pytest.approx(1.0)
    monkeypatch.setattr(PSNR, "version", "next")
    assert run_score(folder, ScoreRequest(metrics=["psnr", "ssim"])).measured == IMAGES + 1


def test_another_benchmark_is_refused_before_anything_is_scored(folder: Path, tmp_path: Path) -> None:
    other = small_bench(tmp_path / "other", 2)
    with pytest.raises(InputError, match="no sample '3'"):
        asyncio.run(score_run(folder / "run", other, ScoreRequest(networks=Networks())))
    metadata = folder / "bench" / "benchmark.json"
    metadata.write_text(metadata.read_text().replace("disc, number 1", "disk, number 1"))
    with pytest.raises(InputError, match="sample 1 is not the one"):
        run_score(folder, ScoreRequest())
    assert scores(folder / "run") == {}


def test_draws_are_averaged_and_each_call_is_stored(folder: Path) -> None:
    answers = iter([4.0, 8.0, 9.0] * 100)
    judge = SpokenJudge(lambda request: report(next(answers)))
    run_score(folder, spoken(3), judges=[judge], terms=Terms((), Limits(concurrency=1)))
    assert len({request.seed for request in judge.seen}) == 3 * 3, "a seed for each sample and draw"
    with BenchRun.open(folder / "run") as run:
        output = next(iter(run.outputs("planted/exact")))
        rows = {row.metric: row for row in run.reader.scores(output.task_id)}
        row = rows["ea@spoken/judge/P"]
        assert row.score.value == pytest.approx(0.7)  # (4 + 8 + 9) / 3 / 10
        assert rows["cp@spoken/judge/P"].score.value == pytest.approx(0.8)
        draws = row.detail["draws"]
        assert isinstance(draws, list)
        calls = {call.key.draw: call for call in run.reader.calls(output.task_id) if call.key.step == "judge"}
        for draw in draws:
            assert isinstance(draw, dict)
            number = draw["draw"]
            assert isinstance(number, int)
            assert "a difference" in calls[number].answer
            assert calls[number].usage.served_model == "spoken-1"


def test_the_request_to_a_judge_follows_its_variant(folder: Path) -> None:
    judge = SpokenJudge(lambda request: report(5))
    names = (JudgeName("spoken/judge", "D", 1), JudgeName("spoken/judge", "P", 1))
    run_score(folder, ScoreRequest(metrics=["psnr"], judges=names), judges=[judge, judge])
    for request in judge.seen:
        described = request.variant == "D"
        assert request.truth is not None
        assert ("disc brightened" if described else "Add a bright disc") in request.instruction
    found = scores(folder / "run")
    assert found["copy-input", "3", "ea@spoken/judge/D"][1] == "the sample has no description of the change"
    assert found["copy-input", "3", "ea@spoken/judge/P"][0] == 0.5


def test_a_failed_draw_keeps_the_others_and_is_repeated_only_on_request(folder: Path) -> None:
    refuses = [True]

    def answer(request: JudgeRequest) -> Observations | Outcome:
        if refuses[0] and len(judge.seen) % 2:
            return Outcome(OutcomeKind.REFUSED, "I will not")
        return report(6)

    judge = SpokenJudge(answer)
    scoring = spoken(2)
    run_score(folder, scoring, judges=[judge])
    refuses[0] = False
    assert run_score(folder, scoring, judges=[judge]).made == 0
    before = len(judge.seen)
    retried = run_score(folder, replace(scoring, retry=True), judges=[judge])
    assert retried.made == len(judge.seen) - before == IMAGES
    with BenchRun.open(folder / "run") as run:
        for output in run.outputs("planted/half"):
            row = next(r for r in run.reader.scores(output.task_id) if r.metric == "ea@spoken/judge/P")
            assert (row.detail["asked"], row.detail["scored"]) == (2, 2)


def test_a_users_own_rubric_is_applied_and_tabulated(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One criterion of 1 to 5, for which the draws give 3 and 4, and one that passes in one draw of two."""
    own = tmp_path / "teaching.toml"
    own.write_text((EXAMPLES / "rubric" / "teaching_rubric" / "teaching.toml").read_text())
    rubric = rubric_named(str(own))
    numbers = iter([(3.0, True), (4.0, False)] * 100)

    def answer(request: JudgeRequest) -> Observations:
        assert request.rubric == rubric and request.finding is None
        value, unhurt = next(numbers)
        results = {
            "recognisable": CriterionResult(value >= 4, value=value),
            "unhurt": CriterionResult(unhurt),
        }
        return Observations(results, {"distracting": False})

    scoring, terms = spoken(2, rubric=rubric), Terms((), Limits(concurrency=1))
    judge = SpokenJudge(answer)
    assert run_score(folder, scoring, judges=[judge], terms=terms).judged == 2 * (IMAGES + 1)
    asked = len(judge.seen)
    assert run_score(folder, scoring, judges=[judge], terms=terms).judged == 0 and len(judge.seen) == asked
    with BenchRun.open(folder / "run") as run:
        table = make_table(read_scores(run))
    found = {m.stored: table.cell("planted/exact", "overall", m.name) for m in table.measures}
    seen = found["recognisable:teaching@spoken/judge/P"], found["unhurt:teaching@spoken/judge/P"]
    # ((3 + 4) / 2 - 1) / (5 - 1), and one of two
    assert [cell.estimate.value for cell in seen if cell] == [0.625, 0.5]
    given = ["bench", "score", str(folder / "run"), "--metrics", "ssim", "--rubric", str(own)]
    assert main(given) == 2  # without a named judge, the instruments judge
    assert "offline/instruments cannot judge by the rubric 'teaching'" in capsys.readouterr().err
    with BenchRun.open(folder / "run") as run:  # before anything was measured
        assert not any("ssim" in run.scores(output) for output in run.outputs("planted/exact"))
    assert main([*given[:-1], "medbench"]) == 2
    assert "did you mean 'medebench'?" in capsys.readouterr().err


def test_distances_of_sets_are_reported_with_their_floor(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    means = Means("mean-colour")
    request = ScoreRequest(
        metrics=["fid", "frechet_encoder", "frechet_radiomics"],
        networks=Networks(features=means, encoder=means),
    )
    assert run_score(folder, request).sets == 3 * len(ARMS)
    assert run_score(folder, request).sets == 0
    with BenchRun.open(folder / "run") as run:
        distances = {(d.arm, d.metric): d for d in read_scores(run).distances}
    exact = distances["planted/exact", "fid:mean-colour"]
    assert exact.value == pytest.approx(0.0, abs=1e-6)
    assert exact.floor is not None
    far = distances["copy-input", "fid:mean-colour"]
    assert (far.value or 0.0) > 0.1
    assert (far.pairs, far.images, far.features) == (2, 3, "mean-colour")
    assert far.line == "floor unknown: 2 independent pairs; n = 3"
    again = distances["copy-input", "frechet_encoder:mean-colour"]
    assert (again.value, again.floor) == (far.value, far.floor)
    few = distances["copy-input", "frechet_radiomics"]
    assert (few.value, few.reason) == (None, "3 images in each set; 26 features need 52")
    args = ["bench", "score", str(folder / "run"), "--judge", "none", "--metrics"]
    assert main([*args, "PSNR"]) == 0  # a name of the tables
    printed = capsys.readouterr().out
    assert "psnr" in printed and "ssim" not in printed and "fid" not in printed
    assert main([*args, "psnr,ssim,fid,frechet_radiomics"]) == 0
    printed = capsys.readouterr().out
    assert f"fid:mean-colour of copy-input: {far.value:.3g}, {far.line}" in printed
    assert "frechet_radiomics of copy-input, resize-only, " in printed and printed.count(few.reason) == 1


def test_scoring_offline_without_options_gives_a_result(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = folder / "run"
    assert main(["bench", "score", str(run), "--json", "--variant", "P"]) == 0
    printed = json.loads(capsys.readouterr().out)
    kept = {row["metric"]: row for row in printed["scores"]}
    assert kept["masked_ssim"]["scored"] == kept["ea@offline/instruments/P"]["scored"] == IMAGES
    assert printed["calls"] == {"made": IMAGES, "replayed": 0}
    assert any("clip" in line for line in printed["not_measured"])
    assert main(["bench", "score", str(run), "--json", "--variant", "P"]) == 0
    assert json.loads(capsys.readouterr().out)["stored"] == {"metrics": 0, "judges": 0, "sets": 0}


def test_the_benchmark_is_found_from_any_folder_and_after_moving_both(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = folder / "run"
    monkeypatch.chdir(tmp_path)  # an empty folder
    with BenchRun.open(run) as opened:
        assert opened.benchmark_root == run.parent / "bench"
    moved = tmp_path / "elsewhere"
    shutil.copytree(run.parent, moved)
    with BenchRun.open(moved / "run") as opened:
        assert opened.benchmark_root == moved / "bench", "the one next to it, although the old one exists"
        opened.header = replace(opened.header, root="/gone/bench", beside="../gone")
        with pytest.raises(InputError, match=r"/gone/bench: .*say where it is now with --bench"):
            opened.find_benchmark(None)
    assert main(["bench", "score", str(moved / "run"), "--metrics", "psnr", "--judge", "none"]) == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [(["--metrics", "psn"], "did you mean 'psnr'"), (["--variant", "Q"], "choose P (prompt) or D")],
)
def test_bad_options_are_refused_in_one_line(
    discs: Path, options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "score", str(discs / "run"), *options]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert "Traceback" not in error
