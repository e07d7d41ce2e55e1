"""Columns of the Parquet tables: their types, the types that `datasets` reads from the file, and rows for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

import orjson
import pyarrow as pa

from plantain.findings import load_taxonomy
from plantain.journal import JsonValue
from plantain.journal.payload import dumps
from plantain.records import Criterion, Direction
from plantain.release.task_record import AttemptRecord, TaskRecord

Cell: TypeAlias = (
    "str | int | float | bool | bytes | list[str] | dict[str, bytes | str] | list[dict[str, Cell]] | None"
)

IMAGE = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
"""What `datasets` calls Image: encoded bytes and a name."""

TASK: Mapping[str, pa.DataType] = {
    "task_id": pa.string(),
    "kind": pa.string(),
    "dataset": pa.string(),
    "image_id": pa.string(),
    "modality": pa.string(),
    "disease": pa.string(),
    "task": pa.string(),
    "outcome": pa.string(),
    "success_round": pa.int8(),
    "generation": pa.int16(),
    "source_labels": pa.list_(pa.string()),
    "source_ref": pa.string(),
    "licence": pa.string(),
    "synthetic_source": pa.bool_(),
    "canary": pa.string(),
}
"""What every table says of the task. `source_ref` names the source image, whose bytes are not released."""

VERDICT: Mapping[str, pa.DataType] = {
    "judge": pa.string(),
    "qualified": pa.bool_(),
    "qualified_all_pass": pa.bool_(),
    "qualified_weighted": pa.bool_(),
    "score": pa.float64(),
    **{criterion.value: pa.bool_() for criterion in Criterion},
    "has_disease": pa.bool_(),
    "other_disease": pa.bool_(),
    "opinion": pa.bool_(),
    "codes": pa.list_(pa.string()),
    "reason": pa.string(),
}
"""The deciding verdict; all null where nobody judged."""

ATTEMPT: Mapping[str, pa.DataType] = {
    "round": pa.int8(),
    "attempt_generation": pa.int16(),
    "superseded": pa.bool_(),
    "instruction": pa.string(),
    "edit_outcome": pa.string(),
    "edit_reason": pa.string(),
    "judge_outcome": pa.string(),
    "sha256": pa.string(),
    "pixel_sha256": pa.string(),
    "support": pa.string(),
    "labels_after": pa.list_(pa.string()),
    **VERDICT,
}
"""One attempt. `labels_after` is null unless it succeeded; see `labels_after`."""

PLAUSIBLE_NORMAL = "plausible normal, not this patient"
"""The label of an image from which the last finding was removed: nobody knows what lay under it."""

IMAGE_TABLE = pa.schema({**TASK, **ATTEMPT, "evidence": pa.string(), "image": IMAGE, "mask": IMAGE})

TRAJECTORY_TABLE = pa.schema({**TASK, "rounds": pa.list_(pa.struct(dict(ATTEMPT))), "record": pa.string()})

PREFERENCE_TABLE = pa.schema(
    {
        "jpg_0": pa.binary(),
        "jpg_1": pa.binary(),
        "label_0": pa.int8(),
        "caption": pa.string(),
        "caption_0": pa.string(),
        "caption_1": pa.string(),
        "same_instruction": pa.bool_(),
        "pair_kind": pa.string(),
        "judge_margin": pa.float64(),
        **{
            f"{name}_{slot}": kind
            for slot in (0, 1)
            for name, kind in {
                "round": pa.int8(),
                "sha256": pa.string(),
                "score": pa.float64(),
                "qualified": pa.bool_(),
                **{criterion.value: pa.bool_() for criterion in Criterion},
            }.items()
        },
        **TASK,
        "record": pa.string(),
    }
)


def task_cells(record: TaskRecord) -> dict[str, Cell]:
    """Values of the columns of TASK."""
    image = record.image
    return {
        "task_id": record.task_id,
        "kind": record.kind.value,
        "dataset": image.dataset,
        "image_id": image.id,
        "modality": record.modality,
        "disease": record.finding,
        "task": record.word,
        "outcome": record.outcome,
        "success_round": record.round if record.outcome == "success" else None,
        "generation": record.generation,
        "source_labels": list(image.labels),
        "source_ref": f"{image.dataset}/{image.id}"
        + (f"@{image.source_sha256}" if image.source_sha256 else ""),
        "licence": image.licence.value,
        "synthetic_source": image.synthetic,
        "canary": record.canary,
    }


def labels_after(record: TaskRecord, attempt: AttemptRecord) -> list[str] | None:
    """What an edited image shows when its edit succeeded: the labels that remain, and the finding that was added.

    An image whose last finding was removed is `PLAUSIBLE_NORMAL`, and only then; None for edits that did not succeed.
    """
    if attempt.role == "control":
        return list(record.image.labels)
    if attempt.role != "success":
        return None
    left = [label for label in record.image.labels if label != record.finding]
    if record.direction is Direction.REMOVE:
        return left or [PLAUSIBLE_NORMAL]
    return [label for label in left if label not in _normal_classes()] + [record.finding]


@cache
def _normal_classes() -> frozenset[str]:
    taxonomy = load_taxonomy()
    return frozenset(taxonomy.normal(modality).name for modality in taxonomy.modalities)


def attempt_cells(record: TaskRecord, attempt: AttemptRecord) -> dict[str, Cell]:
    """Values of the columns of ATTEMPT."""
    edit, edited, judged = attempt.edit_outcome, attempt.edited, attempt.judge_outcome
    return {
        "round": attempt.round,
        "attempt_generation": attempt.generation,
        "superseded": attempt.superseded,
        "instruction": attempt.instruction,
        "edit_outcome": edit.kind.value if edit else None,
        "edit_reason": edit.reason or None if edit else None,
        "judge_outcome": judged.kind.value if judged else None,
        "sha256": edited.sha256 if edited else None,
        "pixel_sha256": edited.pixel_sha256 if edited else None,
        "support": attempt.support,
        "labels_after": labels_after(record, attempt),
        **verdict_cells(attempt),
    }


def verdict_cells(attempt: AttemptRecord) -> dict[str, Cell]:
    """Values of the columns of VERDICT."""
    verdict = attempt.verdict
    if verdict is None:
        return dict.fromkeys(VERDICT)
    seen = verdict.observations
    codes = [code for result in seen.criteria.values() for code in result.codes]
    return {
        "judge": verdict.judge,
        "qualified": verdict.qualified,
        "qualified_all_pass": verdict.qualified_all_pass,
        "qualified_weighted": verdict.qualified_weighted,
        "score": verdict.score,
        **{name.value: seen.criteria[name].passed if name in seen.criteria else None for name in Criterion},
        "has_disease": seen.facts.get("has_disease"),
        "other_disease": seen.facts.get("other_disease"),
        "opinion": seen.opinion,
        "codes": list(dict.fromkeys(codes)),
        "reason": seen.reason,
    }


def evidence_of(attempt: AttemptRecord) -> str | None:
    """What the judge wrote on each criterion, with its confidence and codes, as JSON."""
    verdict = attempt.verdict
    if verdict is None:
        return None
    return dumps(verdict.observations.criteria).decode()


def with_features(schema: pa.Schema) -> pa.Schema:
    """The schema with the key that makes `datasets` decode its images, also when it is read as plain Parquet."""
    features = {field.name: _feature(field.type) for field in schema}
    told = orjson.dumps({"info": {"features": features}})
    return schema.with_metadata({"huggingface": told})


def _feature(kind: pa.DataType) -> JsonValue:
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    name = {"double": "float64"}.get(str(kind), str(kind))
    return {"dtype": name, "_type": "Value"}
