"""The networks that a measurement has at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plantain.metrics.networks.encoders import (
    ImageEncoder,
    ImageTextEncoder,
    PerceptualNetwork,
    RewardModel,
)


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks at hand; None where there is none.

    Attributes:
        clip: images and texts; perceptual: LPIPS; reward: ImageReward; features: of FID and KID.
        why_not: (metrics concerned, why they are not measured), in a line each.
    """

    clip: ImageTextEncoder | None = None
    perceptual: PerceptualNetwork | None = None
    reward: RewardModel | None = None
    features: ImageEncoder | None = None
    why_not: tuple[tuple[str, str], ...] = ()

    def but(self, metrics: str, reason: str) -> Networks:
        """The same, with a reason why some metrics are not measured."""
        return replace(self, why_not=(*self.why_not, (metrics, reason)))
