"""CITATION.cff: how a release is cited, in Citation File Format 1.2.0."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from plantain.privacy.licence_texts import SourcePart
from plantain.release.plan import RunFacts

METHOD = {
    "type": "article",
    "title": "Med-Banana-50K: A Cross-modality Large-Scale Dataset for Text-guided Medical Image Editing",
    "authors": [
        {"family-names": "Chen", "given-names": "Zhihui"},
        {"family-names": "Feng", "given-names": "Mengling"},
    ],
    "notes": "The method that the release was built by.",
}
"""The paper whose loop and rubric a build follows."""


def citation(
    facts: RunFacts,
    parts: Sequence[SourcePart],
    sources: Mapping[str, Mapping[str, str | int]],
    doi: str = "",
) -> str:
    """The text of CITATION.cff. Strings are written as JSON, which YAML reads, so that no name can break it."""
    licences = sorted({part.licence.spdx for part in parts if not part.licence.spdx.startswith("LicenseRef")})
    reference: dict[str, object] = {
        "cff-version": "1.2.0",
        "message": "If you use this dataset, please cite it, the method, and the sources that its images derive from.",
        "type": "dataset",
        "title": f"{facts.name}: text-guided edits of medical images",
        "version": facts.run_id,
        "authors": [{"name": f"The authors of {facts.name}"}],
        "abstract": "Synthetic: edited medical images with instructions, verdicts and failed attempts, made with "
        f"plantain {facts.code_version}. For research, not for clinical use.",
        "keywords": ["medical imaging", "image editing", "synthetic data", "preference data"],
        "license": licences,
        "references": [METHOD, *(_source(name, source) for name, source in sorted(sources.items()))],
    }
    if doi:
        reference["doi"] = doi
    return "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in reference.items())


def _source(name: str, source: Mapping[str, str | int]) -> dict[str, object]:
    reference: dict[str, object] = {
        "type": "data",
        "title": name,
        "authors": [{"name": f"The authors of {name}"}],
        "notes": f"{source.get('images', 0)} of its images were edited; cite it as its owner asks.",
    }
    if source.get("version"):
        reference["version"] = str(source["version"])
    return reference
