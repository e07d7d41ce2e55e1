"""What can be measured: image metrics, each returning a `Score`, and the statistics of counts."""

from plantain.metrics.metric import Mean, Metric, MetricSample
from plantain.metrics.preservation import (
    ContextPreservation,
    CPReference,
    MaskedSSIM,
    Preservation,
    cp_reference,
    preservation,
)
from plantain.metrics.psnr import PSNR, psnr
from plantain.metrics.ssim import SSIM, masked_ssim, ssim, ssim_map
from plantain.metrics.statistics.intervals import wilson

__all__ = [
    "PSNR",
    "SSIM",
    "CPReference",
    "ContextPreservation",
    "MaskedSSIM",
    "Mean",
    "Metric",
    "MetricSample",
    "Preservation",
    "cp_reference",
    "masked_ssim",
    "preservation",
    "psnr",
    "ssim",
    "ssim_map",
    "wilson",
]
