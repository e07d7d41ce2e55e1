"""The one door to models: whoever calls a model gets it here, with consent, jobs and terms around it."""

from __future__ import annotations

from dataclasses import replace

from plantain.models.hosted.batch.client import BatchClient
from plantain.roles.options import ProviderOptions
from plantain.runs.consent_gate import ConsentGate
from plantain.runs.terms import Terms


class Door:
    """The models of one run.

    Args:
        terms: under which they are called.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.jobs = BatchClient()
        self.gate = ConsentGate(terms)

    def options(self, model: str) -> ProviderOptions:
        """What the model's adapter is handed."""
        section = self.terms.provider(model)
        options = replace(section.options(), clearance=self.gate)
        return replace(options, jobs=self.jobs) if section.transport == "batch" else options
