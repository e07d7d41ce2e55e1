"""Procedural rendering of fundus findings."""

from plantain.models.offline.fundus.cataract import add_cataract, remove_cataract
from plantain.models.offline.fundus.drusen import add_drusen
from plantain.models.offline.fundus.retinopathy import add_retinopathy
from plantain.models.offline.fundus.spots import remove_drusen, remove_retinopathy
from plantain.models.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {
    "AMD": FindingRenderer(add_drusen, remove_drusen),
    "Diabetes": FindingRenderer(add_retinopathy, remove_retinopathy),
    "Cataract": FindingRenderer(add_cataract, remove_cataract),
}
