"""Procedural rendering of fundus findings."""

from plantain.models.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {}
