"""The metrics of a benchmark: the same numbers as the functions give, and no score without what it needs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from bench.small_bench import HEIGHT, WIDTH, Distance, Length, Means, small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.score.score import (
    PIXEL_METRICS,
    SampleCase,
    chosen,
    measure,
    measure_on,
    measured,
    missing_scores,
    open_metrics,
)
from plantain.engines.local import LocalEngine
from plantain.journal import StoredScore
from plantain.metrics import Metric, cp_reference, masked_ssim, psnr, ssim
from plantain.metrics.metric import Networks, registered
from plantain.metrics.networks import find_networks
from plantain.records import InputError


def case(bench: Benchmark, i: int = 0) -> SampleCase:
    return SampleCase(bench, bench.samples[i])


def half_way(one: SampleCase) -> np.ndarray:
    assert one.truth is not None
    return (one.before // 2 + one.truth // 2).astype(np.uint8)


def pixel_metrics() -> list[Metric]:
    return open_metrics(set(PIXEL_METRICS), Networks())[0]


def learned(networks: Networks) -> dict[str, Metric]:
    return {
        metric.name: metric
        for metric in open_metrics(set(registered()) - {"text_kept"}, networks)[0]
        if metric.alone
    }


def test_pixel_metrics_are_those_of_the_functions(bench: Benchmark) -> None:
    one = case(bench)
    output = half_way(one)
    found = {metric.name: measured(metric, one, output) for metric in pixel_metrics()}
    assert one.roi is not None
    assert one.roi_grey is not None
    assert one.truth is not None
    assert found["cp_reference"][0] == cp_reference(one.before, output, one.roi_grey)
    assert found["masked_ssim"][0] == masked_ssim(one.before, output, one.roi)
    assert found["ssim"][0] == ssim(one.truth, output)
    assert found["psnr"][0] == psnr(one.truth, output)
    share = np.pi * 16**2 / (WIDTH * HEIGHT)  # a disc of radius 16
    assert found["masked_ssim"][1]["roi_share"] == pytest.approx(share, rel=0.02)
    assert found["masked_ssim"][1]["method"] == "strict"


def test_without_truth_or_description_there_is_a_reason(bench: Benchmark, tmp_path: Path) -> None:
    one = case(small_bench(tmp_path / "bench", 1, truth=False))
    reasons = {metric.name: measured(metric, one, one.before)[0].reason for metric in pixel_metrics()}
    assert reasons["ssim"] == reasons["psnr"] == "the sample has no ground truth"
    assert reasons["masked_ssim"] == ""
    metrics = learned(Networks(clip=Means("mean-colour")))
    score, _ = measured(metrics["clip_talign_d:mean-colour"], case(bench, 2), case(bench, 2).before)
    assert score.reason == "the sample has no description of the change"


def test_learned_metrics_bear_the_name_of_their_network(bench: Benchmark) -> None:
    networks = Networks(clip=Means("mean-colour"), perceptual=Distance(), reward=Length())
    metrics = learned(networks)
    assert sorted(metrics) == [
        "clip_dalign:mean-colour",
        "clip_dalign_d:mean-colour",
        "clip_isim:mean-colour",
        "clip_talign:mean-colour",
        "clip_talign_d:mean-colour",
        "image_reward:length-of-text",
        "image_reward_d:length-of-text",
        "lpips:mean-difference",
    ]
    one = case(bench)
    assert one.truth is not None
    assert measured(metrics["lpips:mean-difference"], one, one.truth)[0].value == 0.0
    assert measured(metrics["clip_isim:mean-colour"], one, one.truth)[0].value == pytest.approx(1.0)
    unedited = measured(metrics["clip_dalign:mean-colour"], one, one.before)[0]
    assert unedited.reason == "nothing was edited: the change has no direction"
    published = learned(Networks(clip=Means("openai/clip-vit-large-patch14")))
    assert set(published) == {"clip_isim", "clip_talign", "clip_talign_d", "clip_dalign", "clip_dalign_d"}
    prompt = len(bench.samples[0].prompt)
    assert measured(metrics["image_reward:length-of-text"], one, one.before)[0].value == prompt
    cut = measured(metrics["clip_talign_d:mean-colour"], one, one.before)[1]["text_cut"]
    assert cut is (len(bench.samples[0].detailed) > 30)
    assert measured(metrics["clip_talign:mean-colour"], one, one.before)[1]["text_cut"] is False


def test_without_weights_it_says_why_and_downloads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    networks = find_networks(chosen(None), clip="nobody/has-this")
    said = dict(networks.why_not)
    assert set(said) >= {"clip", "fid and kid"}
    assert find_networks({"psnr"}).why_not == ()
    with pytest.raises(InputError, match="no such file"):
        find_networks({"fid"}, inception=tmp_path / "none.pt")


def test_a_worker_gives_the_scores_of_this_process(
    discs: Path, bench: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves what it has in another version."""
    metrics, _ = open_metrics(set(PIXEL_METRICS), Networks())
    monkeypatch.setattr(metrics[0], "version", "of another release")

    def sample(name: str) -> SampleCase:
        return SampleCase(bench, bench.sample(name))

    async def there(run: BenchRun, work: dict[str, list[Any]]) -> list[tuple[list[StoredScore], list[Any]]]:
        engine = LocalEngine()
        try:
            return [await measure_on(engine, sample(name), one, run.read) for name, one in work.items()]
        finally:
            engine.close()

    def key(row: StoredScore) -> tuple[object, ...]:
        return row.task_id, row.round, row.metric

    with BenchRun.open(discs / "run") as run:
        work = {name: list(missing_scores(run, outputs, metrics)) for name, outputs in run.by_sample()}
        found = asyncio.run(there(run, work))
        for (name, missing), (rows, rest) in zip(work.items(), found, strict=True):
            here = measure(sample(name), missing, run.read, Lock())
            remaining = measure(sample(name), rest, run.read, Lock())
            assert sorted([*rows, *remaining], key=key) == sorted(here, key=key)
            without = {one.output.task_id for one in missing if one.output.edited is None}
            assert {row.metric for row in remaining if row.task_id not in without} == {metrics[0].name}
