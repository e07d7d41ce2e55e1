"""The one door to models: whoever calls a model gets it here, with consent, jobs and terms around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from plantain.models.hosted.batch.client import BatchClient
from plantain.roles.options import ProviderOptions
from plantain.runs.consent_gate import ConsentGate
from plantain.runs.opening import edition_begun
from plantain.runs.terms import Terms


class Door:
    """The models of one run.

    Args:
        terms: under which they are called.
        begun: of a run that goes on, what each role or model was begun with; see `opening.begun_with`.
    """

    def __init__(self, terms: Terms, begun: Mapping[str, str] = MappingProxyType({})) -> None:
        self.terms = terms
        self._begun = begun
        self.jobs = BatchClient()
        self.gate = ConsentGate(terms)

    def options(self, model: str, role: str = "") -> ProviderOptions:
        """What the model's adapter is handed.

        Args:
            model: its name.
            role: under which the run remembers it, where that is not its name.
        """
        section = self.terms.provider(model)
        edition = edition_begun(self._begun.get(role or model, ""), section.prompts)
        options = replace(section.options(), clearance=self.gate, edition=edition)
        return replace(options, jobs=self.jobs) if section.transport == "batch" else options
