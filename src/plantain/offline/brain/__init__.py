"""Procedural rendering of brain findings."""

from plantain.offline.brain import glioma, meningioma, pituitary, removal
from plantain.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {
    "glioma": FindingRenderer(add=glioma.add, remove=removal.remove_glioma),
    "meningioma": FindingRenderer(add=meningioma.add, remove=removal.remove_meningioma),
    "pituitary": FindingRenderer(add=pituitary.add, remove=pituitary.remove),
}
