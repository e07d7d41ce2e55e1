"""The metrics of a benchmark: the same numbers as the functions give, and no score without what it needs."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from bench.closed_forms import Distance, Length, Means
from bench.discs import SIDE, exact, make_bench, weak
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.score.field import field_of_view
from plantain.bench.score.suite import PIXEL_METRICS, SETS, SampleCase, chosen, measured, open_metrics
from plantain.metrics import Metric, cp_reference, masked_ssim, psnr, ssim
from plantain.metrics.networks.available import find_networks
from plantain.metrics.networks.encoders import Networks
from plantain.metrics.registry import registered
from plantain.records import InputError


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return make_bench(tmp_path_factory.mktemp("suite") / "bench")


def case(bench: Benchmark, i: int = 0) -> SampleCase:
    return SampleCase(bench, bench.samples[i])


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
    output = weak(one.before, 0)
    found = {metric.name: measured(metric, one, output) for metric in pixel_metrics()}
    assert one.roi is not None
    assert one.roi_grey is not None
    assert one.truth is not None
    assert found["cp_reference"][0] == cp_reference(one.before, output, one.roi_grey)
    assert found["masked_ssim"][0] == masked_ssim(one.before, output, one.roi)
    assert found["ssim"][0] == ssim(one.truth, output)
    assert found["psnr"][0] == psnr(one.truth, output)
    share = np.pi * 28**2 / SIDE**2  # a disc of radius 28
    assert found["masked_ssim"][1]["roi_share"] == pytest.approx(share, rel=0.02)
    assert found["masked_ssim"][1]["method"] == "strict"


def test_identical_images_have_no_psnr(bench: Benchmark) -> None:
    one = case(bench)
    score, _ = measured(registered()["psnr"](), one, exact(one.before, 0))
    assert (score.value, score.reason) == (None, "identical images: PSNR is infinite")


def test_without_truth_or_region_there_is_a_reason(tmp_path: Path) -> None:
    one = case(make_bench(tmp_path / "bench", 1, without_truth=True))
    reasons = {metric.name: measured(metric, one, one.before)[0].reason for metric in pixel_metrics()}
    assert reasons["ssim"] == reasons["psnr"] == "the sample has no ground truth"
    assert reasons["masked_ssim"] == ""


@pytest.mark.parametrize("dark", [0, 6])
def test_the_field_of_view_is_the_picture_in_its_dark_surround(dark: int) -> None:
    frame = np.full((200, 240, 3), dark, np.uint8)
    cv2.circle(frame, (120, 100), 80, (140, 80, 40), -1)
    cv2.circle(frame, (120, 100), 20, (0, 0, 0), -1)  # a dark place within belongs to it
    field = field_of_view(frame)
    disc = np.hypot(*(np.indices(field.shape) - np.array([100, 120])[:, None, None])) <= 80
    assert (field != disc).mean() < 0.005


def test_a_photograph_is_field_all_over_and_a_black_frame_too() -> None:
    rng = np.random.default_rng(5)
    assert field_of_view(rng.integers(60, 255, (90, 90, 3), np.uint8)).all()
    assert field_of_view(np.zeros((90, 90, 3), np.uint8)).all()


def test_an_unknown_metric_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no metric 'psn'; did you mean 'psnr'\?"):
        chosen(["psn"])
    assert chosen(None) == set(registered()) | set(SETS)


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
    prompt = len(bench.samples[0].prompt)
    assert measured(metrics["image_reward:length-of-text"], one, one.before)[0].value == prompt
    cut = measured(metrics["clip_talign_d:mean-colour"], one, one.before)[1]["text_cut"]
    assert cut is (len(bench.samples[0].detailed) > 30)


def test_the_description_is_not_replaced_by_the_prompt(bench: Benchmark) -> None:
    metrics = learned(Networks(clip=Means("mean-colour")))
    score, _ = measured(metrics["clip_talign_d:mean-colour"], case(bench, 2), case(bench, 2).before)
    assert score.reason == "the sample has no description of the change"


def test_published_weights_give_the_published_names() -> None:
    networks = Networks(clip=Means("openai/clip-vit-large-patch14"))
    names = set(learned(networks))
    assert names == {"clip_isim", "clip_talign", "clip_talign_d", "clip_dalign", "clip_dalign_d"}


def test_an_image_is_embedded_once_for_all_metrics_of_a_sample(bench: Benchmark) -> None:
    encoder = Means("mean-colour")
    one, output = case(bench), weak(case(bench).before, 0)
    for metric in learned(Networks(clip=encoder)).values():
        measured(metric, one, output)
    assert encoder.asked == 3  # before, output, truth


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
