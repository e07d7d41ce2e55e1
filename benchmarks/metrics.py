"""Masked SSIM compared with scikit-image (and torch libraries where installed) on one core, and a table's statistics.

All libraries get the same images and mask, in turns within one process, on one thread; processor time, the best
of several runs. They do different work (only ours leaves windows out), so each is also run on the whole frame and must
agree there to 1e-6. The share of memory bandwidth is the least traffic (both images and the mask, read once) per
second over what copying an array reaches. The statistics: 8 models x 1,000 samples x 13 organs x 6 metrics from stored
scores, as a process of its own: time and peak memory. Smaller: metrics.py SIDE SAMPLES.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import importlib.util  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402

import cv2  # noqa: E402
import numpy as np  # noqa: E402
from skimage.metrics import structural_similarity  # noqa: E402

from plantain.metrics import masked_ssim, ssim  # noqa: E402
from plantain.metrics.statistics.means import ClusteredMeans  # noqa: E402
from plantain.metrics.statistics.paired import paired_differences  # noqa: E402

TARGET, STRETCH, AGREEMENT = 10.0, 15.0, 1e-6
MODELS, SAMPLES, ORGANS, METRICS = 8, 1000, 13, 6


def seconds(work: Callable[[], object], runs: int) -> float:
    """The least processor time of one call."""
    work()
    times = []
    for _ in range(runs):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def pair(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A smooth colour image, a noisy copy, and a region of a quarter of the frame."""
    rng = np.random.default_rng(0)
    base = cv2.GaussianBlur(rng.integers(0, 256, (side, side, 3), dtype=np.uint8), (0, 0), 4)
    before = cv2.normalize(base, None, 0, 255, cv2.NORM_MINMAX)
    after = np.clip(before + rng.normal(0, 9, before.shape), 0, 255).astype(np.uint8)
    roi = np.zeros((side, side), bool)
    roi[side // 4 : 3 * side // 4, side // 4 : 3 * side // 4] = True
    return before, after, roi


def bandwidth() -> float:
    """Bytes read and written per second by one core that copies 256 MB."""
    source = np.ones(32 * 2**20, np.float64)
    target = np.empty_like(source)
    return 2 * source.nbytes / seconds(lambda: np.copyto(target, source), 3)


def scikit_masked(before: np.ndarray, after: np.ndarray, centres: np.ndarray) -> float:
    """The same strict masked SSIM from scikit-image's full map."""
    _, full = structural_similarity(before, after, channel_axis=-1, full=True)
    return float(full[centres].mean())


def others(before: np.ndarray, after: np.ndarray) -> dict[str, Callable[[], object]]:
    """Other installed libraries, on the whole frame with a uniform 7 x 7 window where it has one."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    torch.set_num_threads(1)
    x, y = (torch.from_numpy(image).permute(2, 0, 1)[None].float() for image in (before, after))
    found: dict[str, Callable[[], object]] = {}
    if importlib.util.find_spec("torchmetrics"):
        from torchmetrics.functional.image import structural_similarity_index_measure as measure

        found["torchmetrics"] = lambda: measure(x, y, gaussian_kernel=False, kernel_size=7, data_range=255.0)
    if importlib.util.find_spec("pytorch_msssim"):
        from pytorch_msssim import ssim as torch_ssim

        found["pytorch-msssim (11 x 11)"] = lambda: torch_ssim(x, y, data_range=255)
    return found


def compare(side: int, copying: float) -> bool:
    before, after, roi = pair(side)
    centres = cv2.erode((~roi).astype(np.uint8), np.ones((7, 7), np.uint8), borderValue=0).astype(bool)
    off = abs((masked_ssim(before, after, roi).value or 0) - scikit_masked(before, after, centres))
    whole = structural_similarity(before, after, channel_axis=-1)
    off = max(off, abs((ssim(before, after).value or 0) - whole))
    ours = seconds(lambda: masked_ssim(before, after, roi), 15)
    frame = seconds(lambda: ssim(before, after), 15)
    theirs = seconds(lambda: scikit_masked(before, after, centres), 3)
    their_frame = seconds(lambda: structural_similarity(before, after, channel_axis=-1), 3)
    share = (before.nbytes + after.nbytes + roi.nbytes) / ours / copying
    print(f"{side} x {side} RGB, one core, agreement {off:.1e}")
    print(
        f"  masked   plantain {1e3 * ours:7.1f} ms   scikit-image {1e3 * theirs:7.1f} ms   {theirs / ours:5.1f}x"
    )
    print(f"  frame    plantain {1e3 * frame:7.1f} ms   scikit-image {1e3 * their_frame:7.1f} ms   ", end="")
    print(f"{their_frame / frame:5.1f}x")
    print(f"  {100 * share:.1f} % of the bandwidth limit: bound by arithmetic, not by memory")
    for name, work in others(before, after).items():
        spent = seconds(work, 3)
        print(f"  frame    {name} {1e3 * spent:.1f} ms: {their_frame / spent:.1f}x scikit-image")
    ratio = theirs / ours
    met = ratio >= TARGET and off <= AGREEMENT
    print(f"  target {TARGET:.0f}x {'met' if met else 'MISSED'}, stretch {STRETCH:.0f}x ", end="")
    print("met" if ratio >= STRETCH else "missed")
    return met


def peak_megabytes() -> float:
    """The most memory that this process has held (Linux; ru_maxrss would count the parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def statistics(samples: int) -> None:
    """The table of one benchmark; prints processor and wall time and the process's peak memory."""
    rng = np.random.default_rng(1)
    organs = rng.integers(0, ORGANS, samples)
    sources = (organs * samples + rng.integers(0, 900, samples)).tolist()
    before = peak_megabytes()
    wall, cpu = time.perf_counter(), time.process_time()
    cells = 0
    for _ in range(METRICS):
        base = rng.random(samples)
        scores = {f"model {m}": base + rng.normal(0.02 * m, 0.2, samples) for m in range(MODELS)}
        for values in scores.values():
            values[rng.random(samples) < 0.02] = np.nan
        plan = ClusteredMeans(sources, organs.tolist())
        for values in scores.values():
            plan.mean(values)
            for organ in range(ORGANS):
                plan.mean(np.where(organs == organ, values, np.nan))
            cells += 1 + ORGANS
        cells += len(paired_differences(scores, sources, organs.tolist()))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_megabytes()
    print(
        f"statistics: {samples} samples x {MODELS} models x {METRICS} metrics, {cells} intervals: {wall:.1f} s ",
        end="",
    )
    print(f"({cpu:.1f} s of processor), peak {peak:.0f} MB, {peak - before:.0f} MB above the imports")


def main() -> int:
    if sys.argv[1:2] == ["--statistics"]:
        statistics(int(sys.argv[2]))
        return 0
    sides, samples = ((int(sys.argv[1]),), sys.argv[2]) if sys.argv[1:] else ((512, 1024), str(SAMPLES))
    cv2.setNumThreads(1)
    copying = bandwidth()
    print(f"copying: {copying / 1e9:.1f} GB/s")
    met = [compare(side, copying) for side in sides]
    subprocess.run([sys.executable, __file__, "--statistics", samples], check=True)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
