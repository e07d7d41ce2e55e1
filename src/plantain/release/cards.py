"""README.md of a release, the dataset card that hubs show and loaders read; and CITATION.cff.

The card describes the contents of a release, how it was made, and its intended and forbidden uses.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plantain.journal import JournalReader
from plantain.journal.questions.release import closed_only, sources_to_mention
from plantain.journal.questions.tables import Composition, Judged
from plantain.journal.questions.tables import table1 as composition_of
from plantain.journal.questions.tables import table2 as judged_of
from plantain.journal.questions.units import snapshot
from plantain.privacy.licences import CC_BY, KNOWN, SourcePart
from plantain.release.plan import SPLITS, ExportOptions, RunFacts, TableConfig, empty_splits
from plantain.release.staging import Staging
from plantain.rubrics import recorded

TEMPLATES = Path(__file__).parent / "templates"

USES_INTENDED = (
    "Training and evaluating models that edit medical images by instruction.",
    "Preference learning and reward modelling from accepted and rejected edits.",
    "Studying how far automatic judges of edits can be trusted.",
)
USES_FORBIDDEN = (
    "Diagnosis, treatment, triage or any other clinical decision.",
    "Passing an edited image off as a recording of a patient, or putting one into a clinical record or a trial.",
    "Finding out who a source image shows.",
    "Estimating how often a finding occurs: edits were chosen, not sampled.",
)
BIASES = (
    "Findings look the way that the editing model draws them, which need not be the way that patients have them.",
    "A success is an edit that the judge model accepted; its blind spots are in the labels.",
    "Findings that are easy to draw succeed more often, so successes are not spread as tasks were.",
    "The sources fix who is represented; their age, sex, ethnicity and devices are mostly not recorded here.",
)
LIMITS = (
    "No radiologist or ophthalmologist has looked at every image; verdicts are a model's.",
    "Images are 8-bit JPEGs of 1024 x 1024 pixels: window, bit depth and geometry of the originals are gone.",
    "A failed attempt of a task that never succeeded has no counterpart, and so forms no preference pair.",
    "Each round has its own instruction, so the two sides of a pair usually answer different instructions.",
    "Edited images differ from originals in compression, and the editor's provider may add an invisible watermark "
    "(such as SynthID): a classifier of edited against original images can learn that instead of the finding.",
    "Edits that plantain made are marked as synthetic in their XMP metadata; imported ones are as they were published.",
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Counts of the released tasks, for the tables of cards.

    Attributes:
        composition: tasks by modality and direction (Table 1).
        judged: attempts by criterion (Table 2).
        synthetic_sources: number of source images that were rendered, not taken.
        unchecked_sources: number of source images that were not searched for burned-in text.
    """

    composition: Composition
    judged: Judged
    synthetic_sources: int
    unchecked_sources: int


def gather(reader: JournalReader) -> Numbers:
    """Count the closed edit tasks of a run by state and criterion (Med-Banana-50K, Tables 1 and 2)."""
    weights = {c.name: c.weight for c in recorded(reader.header.frozen).criteria}
    with closed_only(reader), snapshot(reader):
        synthetic, unchecked = sources_to_mention(reader)
        return Numbers(composition_of(reader), judged_of(reader, weights), synthetic, unchecked)


def models(facts: RunFacts) -> list[tuple[str, str, str]]:
    """Return a row (step, requested model, model that answered) for each model, in the order of steps."""
    order = {"write": 0, "edit": 1, "judge": 2}
    rows = [(step, pair[0], pair[1]) for step, pairs in facts.models.items() for pair in pairs]
    return sorted(rows, key=lambda row: (order.get(row[0], 9), row))


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Make the Jinja environment for Markdown: nothing is escaped for HTML, text from data goes through `cell`."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters.update(cell=cell, percent=_percent, decimal=_decimal, interval=_interval)
    return made


def cell(value: object) -> str:
    """Escape text from data to one line of Markdown without table, markup, link or HTML."""
    line = " ".join(str(value).split())
    return "".join(f"\\{c}" if c in "\\`*_[]{}<>#|!~" else c for c in line)


def _percent(value: float | None) -> str:
    return "not defined" if value is None else f"{100 * value:.1f} %"


def _decimal(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2f}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"


_SIZES = (
    *((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")),
    *((10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M")),
)
"""As the Hub calls them."""

_HUB_NAMES = {spdx: spdx.lower() for spdx in KNOWN} | {
    "ODC-By-1.0": "odc-by",
    "PDDL-1.0": "pddl",
    "ODbL-1.0": "odbl",
}
"""Names of licences on the Hugging Face hub."""


def card(
    facts: RunFacts,
    configs: Sequence[TableConfig],
    numbers: Numbers,
    parts: Sequence[SourcePart],
    images: Mapping[str, int],
    options: ExportOptions,
    judged_by: Sequence[str] = (),
) -> str:
    """Return the text of README.md: YAML that the Hugging Face hub and `datasets` read, then the card.

    Args:
        facts, numbers: the run and its counts.
        configs: tables that can be loaded by name.
        parts: the parts of the release with their licences.
        images: number of edited images by role, each counted once however many layouts contain it.
        options: options of the export.
        judged_by: a line for each judge.
    """
    header = "".join(f"{line}\n" for line in _header(facts, configs, parts, sum(images.values())))
    loop = facts.frozen.get("loop")
    body = (
        environment()
        .get_template("README.md.j2")
        .render(
            facts=facts,
            configs=configs,
            numbers=numbers,
            parts=parts,
            images=images,
            layouts=options.layouts,
            signed=options.sign_cert is not None,
            judged_by=judged_by,
            doi=options.doi,
            snippet=snippet(configs) if configs else "",
            uses_intended=USES_INTENDED,
            uses_forbidden=USES_FORBIDDEN,
            biases=BIASES,
            limits=LIMITS,
            composition_rows=(*numbers.composition.rows, numbers.composition.total),
            judged_rows=(*numbers.judged.criteria, numbers.judged.qualified),
            models=models(facts),
            loop=loop if isinstance(loop, Mapping) else {},
            rubric=recorded(facts.frozen),
            no_split=empty_splits(facts.splits, facts.split_groups),
        )
    )
    return f"---\n{header}---\n\n{body}"


def snippet(configs: Sequence[TableConfig]) -> str:
    """Return Python code that loads the tables of a release from its folder, without a network."""
    first = configs[0]
    failed = next((config for config in configs if config.name == "failed"), first)
    more = "" if failed is first else f"\n\n# edits that the judge rejected: {_loading(failed)}"
    if train := next((config for config in configs if config.name == "train"), None):
        more = f"\n\n# original, instruction, edited, mask, to train an editor: {_loading(train)}{more}"
    return (
        "from pathlib import Path\n\nfrom datasets import load_dataset\n\n"
        f"rows = {_loading(first)}\nprint(len(rows), rows.column_names){more}"
    )


def _loading(config: TableConfig) -> str:
    """The call that loads a table's first split that holds rows."""
    return f'load_dataset(str(Path.cwd()), "{config.name}", split="{next(iter(config.rows))}")'


def _header(
    facts: RunFacts, configs: Sequence[TableConfig], parts: Sequence[SourcePart], images: int
) -> list[str]:
    """Lines of YAML; every string from data is written as JSON, which YAML reads."""
    image_licences = {part.licence for part in parts if part.dataset}
    lines = []
    known = {_HUB_NAMES.get(licence.spdx, "") for licence in image_licences or {CC_BY}}
    if len(known) == 1 and "" not in known:
        lines.append(f"license: {known.pop()}")
    else:
        names = " and ".join(sorted(licence.spdx for licence in image_licences))
        lines += ["license: other", f"license_name: {json.dumps(names)}", "license_link: LICENSES/parts.json"]
    lines += [
        f"pretty_name: {json.dumps(facts.name, ensure_ascii=False)}",
        "language: [en]",
        "task_categories: [image-to-image, reinforcement-learning]",
        "tags: [medical, synthetic, image-editing, preference, not-for-clinical-use]",
        f"size_categories: [{next((name for limit, name in _SIZES if images < limit), '100M<n<1B')}]",
    ]
    if configs:
        lines.append("configs:")
    for number, config in enumerate(configs):
        lines.append(f"- config_name: {json.dumps(config.name)}")
        if number == 0:
            lines.append("  default: true")
        lines.append("  data_files:")
        for split in config.rows:
            lines.append(f"  - split: {split}")
            lines.append(f"    path: {json.dumps([config.pattern(split)])}")
    return lines


# --- tables -----------------------------------------------------------------------------------------

_LAYOUTS = ("images", "train", "originals", "trajectories", "verdicts", "preference")
_FIRST = ("success", "train", "failed", "trajectories", "preference", "verdicts", "originals")


def table_configs(staging: Staging) -> tuple[TableConfig, ...]:
    """List the release's Parquet tables in a fixed order, without empty splits; the first is the default."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for layout in _LAYOUTS:
        for stem, _, count in staging.shards(layout):
            _, table, name = stem.split("/")
            rows[table][name.rpartition("-")[2]] += count
    order = sorted(rows, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    return tuple(
        TableConfig(name, {split: rows[name][split] for split in SPLITS if split in rows[name]})
        for name in order
    )


# --- CITATION.cff -----------------------------------------------------------------------------------

METHOD = {
    "type": "article",
    "title": "Med-Banana-50K: A Cross-modality Large-Scale Dataset for Text-guided Medical Image Editing",
    "authors": [
        {"family-names": "Chen", "given-names": "Zhihui"},
        {"family-names": "Feng", "given-names": "Mengling"},
    ],
    "url": "https://arxiv.org/abs/2511.00801",
    "notes": "The method that the release was built by.",
}
"""The paper whose method a build follows."""


def citation(
    facts: RunFacts,
    parts: Sequence[SourcePart],
    sources: Mapping[str, Mapping[str, str | int]],
    doi: str = "",
) -> str:
    """Return the text of CITATION.cff (Citation File Format 1.2.0), with strings escaped as in JSON.

    Args:
        facts: the run.
        parts: the parts of the release with their licences.
        sources: facts of each source dataset by name, such as "images" (their number) and "version".
        doi: DOI of the dataset; "" without one.
    """
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
