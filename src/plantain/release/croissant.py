"""croissant.json: the release as Croissant 1.0, as JSON-LD.

The tests validate it with mlcroissant and count the records that it loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from plantain.journal import JsonValue
from plantain.privacy.licences import SourcePart
from plantain.release.plan import ReleaseFile, RunFacts, TableConfig

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
        "distribution": distribution,
        "recordSet": records,
    }
    return orjson.dumps(node, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


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
    patterns: list[JsonValue] = [config.pattern(split) for split in config.rows]
    # Not `containedIn` the file objects: readers then find no records at all.
    return {
        "@type": "cr:FileSet",
        "@id": f"table:{config.name}",
        "name": f"table {config.name}",
        "encodingFormat": "application/x-parquet",
        "includes": patterns,
    }


def _table(out: Path, config: TableConfig) -> JsonValue:
    schema = pq.read_schema(min(out.glob(config.pattern(next(iter(config.rows))))))
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
