"""The metrics of a benchmark: the same numbers as the functions give, and no score without its inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.small_bench import HEIGHT, WIDTH, Distance, Length, Means, small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.score.score import PIXEL_METRICS, SampleCase, chosen, measured, open_metrics
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


def test_pixel_metrics_agree_with_the_functions(bench: Benchmark) -> None:
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


def test_scores_without_truth_or_description_have_a_reason(bench: Benchmark, tmp_path: Path) -> None:
    one = case(small_bench(tmp_path / "bench", 1, truth=False))
    reasons = {metric.name: measured(metric, one, one.before)[0].reason for metric in pixel_metrics()}
    assert reasons["ssim"] == reasons["psnr"] == "the sample has no ground truth"
    assert reasons["masked_ssim"] == ""
    metrics = learned(Networks(clip=Means("mean-colour")))
    score, _ = measured(metrics["clip_talign_d:mean-colour"], case(bench, 2), case(bench, 2).before)
    assert score.reason == "the sample has no description of the change"


def test_learned_metrics_contain_the_name_of_their_network(bench: Benchmark) -> None:
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


def test_without_weights_a_reason_is_given_and_nothing_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    networks = find_networks(chosen(None), clip="nobody/has-this")
    reasons = dict(networks.why_not)
    assert set(reasons) >= {"clip", "fid"}
    assert find_networks({"psnr"}).why_not == ()
    with pytest.raises(InputError, match="no such file"):
        find_networks({"fid"}, inception=tmp_path / "none.pt")
