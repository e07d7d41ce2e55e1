"""Procedural rendering of fundus findings."""

from plantain.offline.fundus.arterioles import add_hypertension, remove_hypertension
from plantain.offline.fundus.cataract import add_cataract, remove_cataract
from plantain.offline.fundus.crescent import add_crescent
from plantain.offline.fundus.cup import add_cup, remove_cup
from plantain.offline.fundus.drusen import add_drusen
from plantain.offline.fundus.pigment import remove_crescent
from plantain.offline.fundus.retinopathy import add_retinopathy
from plantain.offline.fundus.spots import remove_drusen, remove_retinopathy
from plantain.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {
    "AMD": FindingRenderer(add_drusen, remove_drusen),
    "Diabetes": FindingRenderer(add_retinopathy, remove_retinopathy),
    "Cataract": FindingRenderer(add_cataract, remove_cataract),
    "Glaucoma": FindingRenderer(add_cup, remove_cup),
    "Hypertension": FindingRenderer(add_hypertension, remove_hypertension),
    "Myopia": FindingRenderer(add_crescent, remove_crescent),
}
