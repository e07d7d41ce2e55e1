"""Procedural rendering of chest findings."""

from plantain.models.offline.rendering import FindingRenderer

RENDERERS: dict[str, FindingRenderer] = {}
