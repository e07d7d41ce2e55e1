"""README.md of a release, the dataset card that hubs show and loaders read, and CITATION.cff."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

from plantain.privacy.licences import CC_BY, KNOWN, SourcePart
from plantain.release.cards.datasheet import ImageCounts, Numbers, render
from plantain.release.plan import ExportOptions, RunFacts, TableConfig
from plantain.release.splits import SPLITS
from plantain.release.staging import Staging

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
    images: ImageCounts,
    options: ExportOptions,
    judged_by: Sequence[str],
) -> str:
    """Return the text of README.md: YAML that the Hugging Face hub and `datasets` read, then the card.

    Args:
        judged_by: a line for each judge.
    """
    header = "".join(f"{line}\n" for line in _header(facts, configs, parts, sum(images.roles.values())))
    body = render(
        "README.md.j2",
        facts=facts,
        configs=configs,
        numbers=numbers,
        parts=parts,
        images=images,
        layouts=options.layouts,
        judged_by=judged_by,
        doi=options.doi,
        snippet=snippet(configs, options.layouts),
    )
    return f"---\n{header}---\n\n{body}"


def snippet(configs: Sequence[TableConfig], layouts: Sequence[str]) -> str:
    """Return Python code that loads the release from its folder, without a network."""
    if configs:
        first = next((config for config in configs if config.default), configs[0])
        failed = next((config for config in configs if config.name == "failed"), first)
        more = "" if failed is first else f"\n\n# edits that the judge rejected: {_loading(failed)}"
        if train := next((config for config in configs if config.name == "train"), None):
            more = f"\n\n# original, instruction, edited, mask, to train an editor: {_loading(train)}{more}"
        return (
            "from pathlib import Path\n\nfrom datasets import load_dataset\n\n"
            f"rows = {_loading(first)}\nprint(len(rows), rows.column_names){more}"
        )
    if "webdataset" in layouts:
        return (
            "from pathlib import Path\n\nimport webdataset as wds\n\n"
            'shards = sorted(str(path) for path in Path("wds").glob("[!mo]*.tar"))\n'
            'rows = list(wds.WebDataset(shards, shardshuffle=False).decode("pil"))\n'
            'print(len(rows), rows[0]["json"]["task_id"])'
        )
    return (
        "import json\nfrom pathlib import Path\n\n"
        'lines = Path("trajectories/trajectories.jsonl").read_text(encoding="utf-8").splitlines()\n'
        "rows = [json.loads(line) for line in lines]\n"
        'print(len(rows), rows[0]["task_id"])'
    )


def _loading(config: TableConfig) -> str:
    """The call that loads a table's first split that holds rows."""
    return f'load_dataset(str(Path.cwd()), "{config.name}", split="{next(iter(config.splits))}")'


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
    for config in configs:
        lines.append(f"- config_name: {json.dumps(config.name)}")
        if config.default:
            lines.append("  default: true")
        lines.append("  data_files:")
        for split, patterns in config.splits.items():
            lines.append(f"  - split: {split}")
            lines.append(f"    path: {json.dumps(list(patterns))}")
    return lines


# --- tables -----------------------------------------------------------------------------------------

_LAYOUTS = ("images", "train", "originals", "trajectories", "verdicts", "preference")
_FIRST = ("success", "train", "failed", "trajectories", "preference", "verdicts", "originals")


def table_configs(staging: Staging) -> tuple[TableConfig, ...]:
    """Return every Parquet table in a fixed order, without empty splits; columns tell modality and direction."""
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    files: dict[str, dict[str, str]] = defaultdict(dict)
    for layout in _LAYOUTS:
        for stem, _, count in staging.shards(layout):
            folder, _, name = stem.rpartition("/")
            split = name.rpartition("-")[2]
            table = folder.rpartition("/")[2]
            rows[table][split] = rows[table].get(split, 0) + count
            files[table][split] = f"{folder}/*-{split}-*.parquet"
    tables = [name for name in _FIRST if name in rows]
    order = tables + sorted(set(rows) - set(tables))
    return tuple(
        TableConfig(
            name,
            {split: (files[name][split],) for split in SPLITS if split in rows[name]},
            {split: rows[name][split] for split in SPLITS if split in rows[name]},
            default=index == 0,
        )
        for index, name in enumerate(order)
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
    """Return CITATION.cff (Citation File Format 1.2.0). Strings are JSON, which YAML reads, so no name breaks it."""
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
