"""What can be measured: image metrics, each returning a `Score`, and the statistics of counts."""

from plantain.metrics.intervals import wilson
from plantain.metrics.psnr import psnr
from plantain.metrics.ssim import masked_ssim, ssim, ssim_map

__all__ = ["masked_ssim", "psnr", "ssim", "ssim_map", "wilson"]
