"""Procedural rendering of fundus findings."""

from plantain.models.offline.fundus.arterioles import add_hypertension, remove_hypertension
from plantain.models.offline.fundus.cataract import add_cataract, remove_cataract
from plantain.models.offline.fundus.crescent import add_crescent
from plantain.models.offline.fundus.cup import add_cup, remove_cup
from plantain.models.offline.fundus.drusen import add_drusen
from plantain.models.offline.fundus.pigment import remove_crescent
from plantain.models.offline.fundus.retinopathy import add_retinopathy
from plantain.models.offline.fundus.spots import remove_drusen, remove_retinopathy
from plantain.models.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {
    "AMD": FindingRenderer(add_drusen, remove_drusen),
    "Diabetes": FindingRenderer(add_retinopathy, remove_retinopathy),
    "Cataract": FindingRenderer(add_cataract, remove_cataract),
    "Glaucoma": FindingRenderer(add_cup, remove_cup),
    "Hypertension": FindingRenderer(add_hypertension, remove_hypertension),
    "Myopia": FindingRenderer(add_crescent, remove_crescent),
}
