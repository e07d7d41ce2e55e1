"""croissant.json: the release as Croissant 1.0 with responsible-AI properties, as JSON-LD.

The tests validate it with mlcroissant and count the records that it loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from plantain.journal import JsonValue
from plantain.privacy.licences import SourcePart
from plantain.release.cards import BIASES, LIMITS, USES_FORBIDDEN, USES_INTENDED
from plantain.release.plan import TRAJECTORIES, ReleaseFile, RunFacts, TableConfig

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"

_SPECIAL: dict[str, object] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}
_TERMS = (
    "@language @vocab citeAs column conformsTo cr rai data dataType dct equivalentProperty examples "
    "extract field fileProperty fileObject fileSet format includes isLiveDataset jsonPath key md5 "
    "parentField path recordSet references regex repeated replace samplingRate sc separator source "
    "subField transform"
)
CONTEXT = {name: _SPECIAL.get(name, f"cr:{name}") for name in _TERMS.split()}
"""The context that the specification prescribes: its own terms, and a few of other vocabularies."""

_TASK_FIELDS = ("task_id", "modality", "finding", "direction", "state", "split")

_IMAGE_COLUMNS = frozenset({"jpg_0", "jpg_1"})

_TYPES = (
    (pa.types.is_string, "sc:Text"),
    (pa.types.is_boolean, "sc:Boolean"),
    (pa.types.is_integer, "sc:Integer"),
    (pa.types.is_floating, "sc:Float"),
)


def croissant(
    out: Path,
    facts: RunFacts,
    configs: Sequence[TableConfig],
    parts: Sequence[SourcePart],
    files: Iterable[ReleaseFile],
    doi: str = "",
) -> bytes:
    """Return the text of croissant.json.

    Args:
        out: folder of the release; columns are read from its tables.
        facts: the run.
        configs: tables that can be loaded by name.
        parts: the parts of the release with their licences.
        files: its data files; shards and records are listed with their hashes, images of a tree are not.
        doi: DOI of the dataset; "" without one.
    """
    listed = [
        file for file in files if not file.embedded and file.path.endswith((".parquet", ".tar", ".jsonl"))
    ]
    distribution: list[JsonValue] = [_file_object(file) for file in listed]
    records: list[JsonValue] = []
    for config in configs:
        distribution.append(_file_set(config))
        records.append(_table(out, config))
    if any(file.path == TRAJECTORIES for file in listed):
        records.append(_tasks())
    node = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": facts.name.replace(" ", "-"),
        "conformsTo": CONFORMS_TO,
        "description": "Edited medical images with instructions, verdicts and failed attempts. Synthetic, for "
        "research, not for clinical use.",
        "license": sorted({part.licence.url or f"LICENSES/{part.licence.spdx}.txt" for part in parts}),
        "url": f"urn:plantain:{facts.run_id}",
        "version": "1.0.0",
        "citeAs": f"The authors of {facts.name}. {facts.name}: text-guided edits of medical images, {facts.run_id}.",
        **({"identifier": f"https://doi.org/{doi}", "sameAs": f"https://doi.org/{doi}"} if doi else {}),
        "isLiveDataset": False,
        **_responsible(facts),
        "distribution": distribution,
        "recordSet": records,
    }
    return orjson.dumps(node, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _responsible(facts: RunFacts) -> dict[str, JsonValue]:
    """Return the properties of Croissant's responsible-AI vocabulary; DATASHEET.md has the numbers."""
    asked: list[JsonValue] = [*sorted({pair[0] for pairs in facts.models.values() for pair in pairs})]
    loop = facts.frozen.get("loop")
    rounds = loop.get("max_rounds") if isinstance(loop, Mapping) else None
    counts = ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in facts.tasks.items())
    carried = ", ".join(
        f"{name} {held['carried']} of {sum(held.values())}" for name, held in facts.originals.items()
    )
    return {
        "rai:dataCollection": "A model edited source images by an instruction that a model wrote; a judge model "
        f"observed each edit, and a fixed policy decided{f', for up to {rounds} rounds' if rounds else ''}.",
        "rai:dataCollectionType": ["Synthetic data", "Derived data"],
        "rai:dataCollectionMissingData": f"Tasks: {counts}; {facts.left_out} were still open and are left out.",
        "rai:dataCollectionRawData": f"Prepared source images in the release: {carried or 'none'}.",
        "rai:dataAnnotationProtocol": "A judge model observes the criteria; code computes the verdict from them.",
        "rai:dataAnnotationPlatform": f"plantain {facts.code_version}".strip(),
        "rai:machineAnnotationTools": asked,
        "rai:annotatorDemographics": "The annotators are models; ratings by people are marked as such.",
        "rai:dataLimitations": list(LIMITS),
        "rai:dataBiases": list(BIASES),
        "rai:dataUseCases": list(USES_INTENDED),
        "rai:dataSocialImpact": "Forbidden: " + " ".join(USES_FORBIDDEN),
        "rai:dataReleaseMaintenancePlan": "Images whose patient withdraws are removed, and a new release is made.",
        "rai:personalSensitiveInformation": "Source images are of patients or of published specimens. The release "
        "contains no names; ids of credentialed sources are salted pseudonyms.",
    }


def _file_object(file: ReleaseFile) -> JsonValue:
    formats = {
        ".parquet": "application/x-parquet",
        ".tar": "application/x-tar",
        ".jsonl": "application/jsonlines",
    }
    return {
        "@type": "cr:FileObject",
        "@id": f"file:{file.path}",
        "name": file.path,
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": formats[Path(file.path).suffix],
        "sha256": file.sha256,
    }


def _file_set(config: TableConfig) -> JsonValue:
    patterns: list[JsonValue] = [pattern for several in config.splits.values() for pattern in several]
    # Not `containedIn` the file objects: readers then find no records at all.
    return {
        "@type": "cr:FileSet",
        "@id": f"table:{config.name}",
        "name": f"table {config.name}",
        "encodingFormat": "application/x-parquet",
        "includes": patterns,
    }


def _table(out: Path, config: TableConfig) -> JsonValue:
    pattern = next(iter(config.splits.values()))[0]
    schema = pq.read_schema(sorted(out.glob(pattern))[0])
    fields: list[JsonValue] = [node for column in schema if (node := _field(config.name, column)) is not None]
    return {
        "@type": "cr:RecordSet",
        "@id": config.name,
        "name": config.name,
        "description": f"{sum(config.rows.values())} rows",
        "field": fields,
    }


def _field(table: str, column: pa.Field) -> JsonValue:
    """Return a column as a field; None for nested ones, which Croissant 1.0 readers do not read from Parquet."""
    source: dict[str, JsonValue] = {
        "fileSet": {"@id": f"table:{table}"},
        "extract": {"column": column.name},
    }
    kind, repeated = column.type, False
    if pa.types.is_list(kind):
        kind, repeated = kind.value_type, True
    if column.name in _IMAGE_COLUMNS:
        data_type = "sc:ImageObject"
    elif column.name in ("image", "mask", "original", "edited") and pa.types.is_struct(kind):
        if column.name == "mask" or (column.name == "original" and table != "train"):
            return None  # null where there is none, which the image loader does not accept
        data_type = "sc:ImageObject"
        source["transform"] = {"jsonPath": "bytes"}
    else:
        data_type = next((name for is_kind, name in _TYPES if is_kind(kind)), "")
    if not data_type:
        return None
    node: dict[str, JsonValue] = {
        "@type": "cr:Field",
        "@id": f"{table}/{column.name}",
        "name": column.name,
        "dataType": data_type,
        "source": source,
    }
    return {**node, "repeated": True} if repeated else node


def _tasks() -> JsonValue:
    return {
        "@type": "cr:RecordSet",
        "@id": "tasks",
        "name": "tasks",
        "description": "every task of the release; the whole record is the line of JSON itself",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"tasks/{name}",
                "name": name,
                "dataType": "sc:Text",
                "source": {"fileObject": {"@id": f"file:{TRAJECTORIES}"}, "extract": {"column": name}},
            }
            for name in _TASK_FIELDS
        ],
    }
