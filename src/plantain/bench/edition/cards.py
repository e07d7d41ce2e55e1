"""What an exported benchmark says of itself: the card that hubs show, and Croissant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.edition.versions import Edition
from plantain.files.croissant import CONFORMS_TO, CONTEXT
from plantain.privacy.licence_texts import SourcePart
from plantain.records.counts import counted

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))

_PICTURES = ("previous",)
_TEXTS = (
    "id",
    "organ",
    "task",
    "prompt",
    "rephrased",
    "detailed",
    "direction",
    "cluster",
    "dataset",
    "licence",
)


def readme(bench: Benchmark, parts: Sequence[SourcePart], history: Sequence[Edition]) -> str:
    """The text of README.md: YAML for the Hub and `datasets`, then the card."""
    named = {part.licence.spdx for part in parts}
    size = next((category for most, category in _SIZES if len(bench.samples) < most), "100K<n<1M")
    licence = (
        named.pop().lower()
        if len(named) == 1 and not next(iter(named)).startswith("LicenseRef")
        else "other\nlicense_name: by-source\nlicense_link: LICENSES/parts.json"
    )
    header = (
        f"pretty_name: {json.dumps(bench.name)}\nlanguage:\n- en\nlicense: {licence}\nsize_categories:\n- {size}\n"
        "tags:\n- medical\n- image-editing\n- benchmark\n- croissant\nconfigs:\n- config_name: samples\n  data_files:\n"
        "  - split: test\n    path: data/samples.parquet\n"
    )
    organs = Counter(sample.organ for sample in bench.samples)
    truths = sum(sample.changed is not None for sample in bench.samples)
    synthetic = sum(sample.synthetic_truth for sample in bench.samples)
    lines = [
        f"# {bench.name} {history[-1].version}",
        "",
        f"A benchmark of text-guided edits of medical images: {counted(len(bench.samples), 'sample')} from "
        f"{len({sample.cluster for sample in bench.samples}):,} sources. {truths:,} have an image after"
        + (f", {synthetic:,} of them synthetic" if synthetic else "")
        + f"; {sum(sample.roi is not None for sample in bench.samples):,} have a region. Not for clinical use.",
        "",
        f"Content: `{bench.digest}`. Scores of two versions do not belong in one column.",
        "",
        "| organ | samples |",
        "|---|---|",
        *(f"| {organ} | {n:,} |" for organ, n in sorted(organs.items())),
        "",
        "## Licences",
        "",
        "| pictures of | samples | licence |",
        "|---|---|---|",
        *(
            f"| {part.dataset} | {part.images:,} | [{part.licence.spdx}]({part.licence.file}) |"
            for part in parts
        ),
        "",
        "Whom to credit: [LICENSES/ATTRIBUTION.md](LICENSES/ATTRIBUTION.md).",
        "",
        "## Use",
        "",
        "```bash",
        "plantain bench verify .",
        "plantain bench generate . --run runs/mine --editor PROVIDER/MODEL",
        "plantain bench score runs/mine && plantain bench pack runs/mine --to submission",
        "```",
        "",
        "## Versions",
        "",
        *(f"- {edition.version}: {edition.note}" for edition in reversed(history)),
        "",
    ]
    return f"---\n{header}---\n\n" + "\n".join(lines)


def croissant(
    bench: Benchmark, parts: Sequence[SourcePart], edition: Edition, table_sha256: str, table: Path
) -> bytes:
    """The text of croissant.json: Croissant 1.0 over the table of samples."""
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": "-".join(bench.name.split()),
        "conformsTo": CONFORMS_TO,
        "description": "Pairs of medical images before and after a change, with instruction and region: a benchmark of "
        "text-guided editing. For research, not for clinical use.",
        "license": sorted({part.licence.url or part.licence.file for part in parts}),
        "url": f"urn:plantain:{bench.digest}",
        "version": edition.version,
        "citeAs": f"The authors of {bench.name}. {bench.name} {edition.version}, {bench.digest[:12]}.",
        "isLiveDataset": False,
        "rai:dataUseCases": ["Measuring models that edit medical images"],
        "rai:dataLimitations": [
            "Samples of one source are not independent",
            "Nothing is known of sources that it has not",
        ],
        "rai:personalSensitiveInformation": "Images are of patients or of published specimens; addresses of pairs are "
        "kept as hashes.",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "samples.parquet",
                "name": "samples.parquet",
                "contentUrl": "data/samples.parquet",
                "contentSize": f"{table.stat().st_size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": table_sha256,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "samples",
                "name": "samples",
                "description": f"{counted(len(bench.samples), 'sample')}",
                "field": [_field(name, "sc:Text") for name in _TEXTS]
                + [_field(name, "sc:ImageObject") for name in _PICTURES],
            }
        ],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _field(name: str, kind: str) -> dict[str, object]:
    source: dict[str, object] = {"fileObject": {"@id": "samples.parquet"}, "extract": {"column": name}}
    if kind == "sc:ImageObject":
        source["transform"] = {"jsonPath": "bytes"}
    return {"@type": "cr:Field", "@id": f"samples/{name}", "name": name, "dataType": kind, "source": source}
