"""Our own metrics of pixels, registered as anybody's are: three look at the image before, two at the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plantain.journal import JsonValue
from plantain.metrics import cp_reference, preservation, psnr, ssim
from plantain.metrics.contract import OutputMetric
from plantain.pixels.arrays import Pixels
from plantain.records import Score

if TYPE_CHECKING:  # the suite is made of these
    from plantain.bench.score.suite import Case

Detail = Mapping[str, JsonValue]


class CPReference(OutputMetric):
    """Context preservation as MedEBench publishes it."""

    name, label = "cp_reference", "CP as published"
    low, high, needs = -1.0, 1.0, ("roi",)

    def measure(self, sample: Case, output: Pixels) -> tuple[Score, Detail]:
        grey = sample.roi_grey
        assert grey is not None
        return cp_reference(sample.before, output, grey), {"roi_share": float(grey.mean()) / 255}


class MaskedSSIM(OutputMetric):
    """Context preservation without its faults: SSIM of windows that lie wholly outside the region."""

    name, label, column = "masked_ssim", "context preservation (SSIM outside the region)", "CP"
    low, high, needs = -1.0, 1.0, ("roi",)

    def measure(self, sample: Case, output: Pixels) -> tuple[Score, Detail]:
        assert sample.roi is not None
        found = preservation(sample.before, output, sample.roi)
        return found.score, {"roi_share": found.roi_share, "method": found.method, "pixels": found.pixels}


class MaskedSSIMInField(OutputMetric):
    """The same, of what of the image is image."""

    name, label = "masked_ssim_fov", "CP inside the field of view"
    low, high, needs = -1.0, 1.0, ("roi",)

    def measure(self, sample: Case, output: Pixels) -> tuple[Score, Detail]:
        assert sample.roi is not None
        found = preservation(sample.before, output, sample.roi, sample.field)
        return found.score, {
            "roi_share": found.roi_share,
            "method": found.method,
            "pixels": found.pixels,
            "field_share": float(sample.field.mean()),
        }


class SSIM(OutputMetric):
    """Structural similarity of the output and the real image after."""

    name, label = "ssim", "SSIM with the truth"
    low, high, needs = -1.0, 1.0, ("truth",)

    def measure(self, sample: Case, output: Pixels) -> Score:
        assert sample.truth is not None
        return ssim(sample.truth, output)


class PSNR(OutputMetric):
    """Peak signal-to-noise ratio of the output and the real image after."""

    name, label, unit, digits, needs = "psnr", "PSNR with the truth, dB", "dB", 1, ("truth",)

    def measure(self, sample: Case, output: Pixels) -> Score:
        assert sample.truth is not None
        return psnr(sample.truth, output)
