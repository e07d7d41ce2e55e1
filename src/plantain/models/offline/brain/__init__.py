"""Procedural rendering of brain findings."""

from plantain.models.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {}
