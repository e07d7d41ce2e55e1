"""Image metrics, each returning a `Score`, and the statistics of counts."""

from plantain.metrics.metric import Metric, MetricSample
from plantain.metrics.preservation import Preservation, cp_reference, preservation
from plantain.metrics.psnr import psnr
from plantain.metrics.ssim import masked_ssim, ssim
from plantain.metrics.statistics.intervals import wilson

__all__ = [
    "Metric",
    "MetricSample",
    "Preservation",
    "cp_reference",
    "masked_ssim",
    "preservation",
    "psnr",
    "ssim",
    "wilson",
]
