"""Image metrics, each returning a `Score`, and the statistics of counts."""

from plantain.metrics.metric import Metric, MetricSample
from plantain.metrics.pixelwise import cp_reference, masked_ssim, psnr, ssim
from plantain.metrics.statistics.intervals import wilson

__all__ = [
    "Metric",
    "MetricSample",
    "cp_reference",
    "masked_ssim",
    "psnr",
    "ssim",
    "wilson",
]
