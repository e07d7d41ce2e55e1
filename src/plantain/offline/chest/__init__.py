"""Procedural rendering of chest findings on frontal radiographs, each keyed by the finding's exact name."""

from plantain.offline.chest import (
    airspace,
    atelectasis,
    edema,
    effusion,
    fracture,
    heart,
    lesion,
    mediastinum,
    pneumothorax,
)
from plantain.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {
    "Cardiomegaly": heart.CARDIOMEGALY,
    "Lung Lesion": lesion.RENDERER,
    "Pleural Effusion": effusion.RENDERER,
    "Pneumothorax": pneumothorax.RENDERER,
    "Consolidation": airspace.CONSOLIDATION_RENDERER,
    "Pneumonia": airspace.PNEUMONIA_RENDERER,
    "Lung Opacity": airspace.OPACITY_RENDERER,
    "Atelectasis": atelectasis.RENDERER,
    "Edema": edema.RENDERER,
    "Fracture": fracture.RENDERER,
    "Enlarged Cardiomediastinum": mediastinum.RENDERER,
}
