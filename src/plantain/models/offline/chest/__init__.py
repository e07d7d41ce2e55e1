"""Procedural rendering of chest findings on frontal radiographs, each keyed by the finding's exact name."""

from plantain.models.offline.chest import lesion
from plantain.models.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {
    "Lung Lesion": lesion.RENDERER,
}
