"""Columns of the Parquet tables: their types, and the cells of their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import pyarrow as pa

from plantain.journal.rows import dumps
from plantain.records import Rubric, TaskState, Verdict
from plantain.release.task_record import AttemptRecord, TaskRecord, VerdictRecord
from plantain.rubrics import recorded

Cell: TypeAlias = (
    "str | int | float | bool | bytes | list[str] | dict[str, bytes | str] | list[dict[str, Cell]] | None"
)

IMAGE = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
"""The type Image of `datasets`: encoded bytes and a name."""

TEXT, TEXTS, YES_NO = pa.string(), pa.list_(pa.string()), pa.bool_()

Types = Mapping[str, pa.DataType]


def _texts(names: str) -> Types:
    return dict.fromkeys(names.split(), TEXT)


TASK: Types = {
    **_texts("task_id dataset image_id patient modality finding direction outcome"),
    "success_round": pa.int8(),
    "generation": pa.int16(),
    "source_labels": TEXTS,
    **_texts("source_ref original_sha256 licence"),
    "synthetic_source": YES_NO,
}
"""In every table. `patient` is the source's patient or study, null where it has none. `source_ref` names the source
image, `original_sha256` its prepared image: the key of the table `originals`."""

ATTEMPT: Types = {
    "round": pa.int8(),
    "attempt_generation": pa.int16(),
    "superseded": YES_NO,
    **_texts("instruction edit_outcome edit_reason judge_outcome sha256 pixel_sha256 support"),
}
"""One attempt, without its verdict."""

ORIGINAL_TABLE = pa.schema(
    {
        **_texts("sha256 image_id dataset patient"),
        "shared_by": TEXTS,
        "modality": TEXT,
        "labels": TEXTS,
        **_texts("licence terms credit"),
        "synthetic": YES_NO,
        "image": IMAGE,
    }
)
"""One original a row. `licence` is its owner's class, `terms` their licence, `shared_by` every image, as DATASET/ID,
with these bytes."""

SLOT: Types = {"round": pa.int8(), "sha256": TEXT, "score": pa.float64(), "qualified": YES_NO}
"""Of each of the two edits of a preference pair, with the number of its slot."""

_JUDGED: Types = {
    "judge": TEXT,
    **dict.fromkeys(("qualified", "qualified_all_pass", "qualified_weighted"), YES_NO),
    "score": pa.float64(),
}
_STATED: Types = {"opinion": YES_NO, "codes": TEXTS, "reason": TEXT}
_NAMED = ("evidence", "image", "mask", "original", "edited", "record", "rounds")


class ReleaseColumns:
    """The columns of a release's tables, which depend on the criteria and facts of the run's rubric.

    Attributes:
        tables: the schema of every table by its folder's name.
        criteria: column of each criterion, by its name; one with a scale has a second column, NAME_value.
        facts: column of each fact of the rubric, by its name.
    """

    def __init__(self, rubric: Rubric) -> None:
        fixed = {*TASK, *ATTEMPT, *_JUDGED, *_STATED, *_NAMED}
        self.criteria = {c.name: _unlike(c.name, fixed, "criterion") for c in rubric.criteria}
        self.facts = {name: _unlike(name, {*fixed, *self.criteria.values()}, "fact") for name in rubric.facts}
        self._values = {c.name: f"{self.criteria[c.name]}_value" for c in rubric.criteria if c.scale}
        self._passed = dict.fromkeys(self.criteria.values(), YES_NO)
        self.verdict: Types = {
            **_JUDGED,
            **self._passed,
            **dict.fromkeys(self._values.values(), pa.float64()),
            **dict.fromkeys(self.facts.values(), YES_NO),
            **_STATED,
        }
        attempt = {**ATTEMPT, **self.verdict}
        image = {**TASK, **attempt, "evidence": TEXT, "image": IMAGE, "mask": IMAGE}
        self._image = pa.schema(image)
        self.tables: Mapping[str, pa.Schema] = {
            "success": pa.schema({**image, "original": IMAGE}),
            "train": pa.schema(
                {
                    "original": IMAGE,
                    "instruction": TEXT,
                    "edited": IMAGE,
                    "mask": IMAGE,
                    **TASK,
                    "sha256": TEXT,
                    **self.verdict,
                }
            ),
            "verdicts": pa.schema(
                {
                    **TASK,
                    "attempt_generation": pa.int16(),
                    "round": pa.int8(),
                    "superseded": YES_NO,
                    "instruction": TEXT,
                    "sha256": TEXT,
                    "draw": pa.int32(),
                    "decisive": YES_NO,
                    **self.verdict,
                    "evidence": TEXT,
                }
            ),
            "trajectories": pa.schema({**TASK, "rounds": pa.list_(pa.struct(attempt)), "record": TEXT}),
            "preference": pa.schema(self._preference()),
            "originals": ORIGINAL_TABLE,
        }

    def table(self, name: str) -> pa.Schema:
        """Return the schema of a table; the schema of edited images for a name that is not in `tables`."""
        return self.tables.get(name, self._image)

    def _preference(self) -> Types:
        return {
            "jpg_0": pa.binary(),
            "jpg_1": pa.binary(),
            "label_0": pa.int8(),
            **_texts("caption caption_0 caption_1"),
            "same_instruction": YES_NO,
            "judge": TEXT,
            **{f"{name}_{number}": kind for number in (0, 1) for name, kind in SLOT.items()},
            **TASK,
            "record": TEXT,
        }

    # --- cells --------------------------------------------------------------------------------------

    def attempt_cells(self, attempt: AttemptRecord) -> dict[str, Cell]:
        """Return the cells of an attempt and of its deciding verdict, by column."""
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
            **self.verdict_cells(attempt.verdict),
        }

    def verdict_cells(self, verdict: Verdict | None) -> dict[str, Cell]:
        """Return the cells of a verdict by column; all null without a verdict."""
        if verdict is None:
            return dict.fromkeys(self.verdict)
        seen = verdict.observations
        results = {name: seen.criteria.get(name) for name in self.criteria}
        codes = [code for result in seen.criteria.values() for code in result.codes]
        return {
            "judge": verdict.judge,
            "qualified": verdict.qualified,
            "qualified_all_pass": verdict.qualified_all_pass,
            "qualified_weighted": verdict.qualified_weighted,
            "score": verdict.score,
            **{self.criteria[name]: result.passed if result else None for name, result in results.items()},
            **{
                column: result.value if (result := results[name]) else None
                for name, column in self._values.items()
            },
            **{column: seen.facts.get(name) for name, column in self.facts.items()},
            "opinion": seen.opinion,
            "codes": list(dict.fromkeys(codes)),
            "reason": seen.reason,
        }

    def row_of_verdict(
        self, record: TaskRecord, attempt: AttemptRecord, stored: VerdictRecord
    ) -> dict[str, Cell]:
        """Return a row of the table `verdicts`: one judge's verdict on one attempt, even if it does not decide."""
        return {
            **task_cells(record),
            **self.verdict_cells(stored.verdict),
            "attempt_generation": attempt.generation,
            "round": attempt.round,
            "superseded": attempt.superseded,
            "instruction": attempt.instruction,
            "sha256": attempt.edited.sha256 if attempt.edited else None,
            "draw": stored.draw,
            "decisive": stored.decisive,
            "evidence": evidence_of(stored.verdict),
        }


def columns_of(frozen: Mapping[str, object]) -> ReleaseColumns:
    """Make the columns from a run's frozen settings. Raise InputError, KeyError or TypeError for an invalid rubric."""
    return ReleaseColumns(recorded(frozen))


def _unlike(name: str, taken: Collection[str], prefix: str) -> str:
    """Return a name that no other column has."""
    return f"{prefix}_{name}" if name in taken else name


def task_cells(record: TaskRecord) -> dict[str, Cell]:
    """Return the cells of the columns TASK for a task's record."""
    image = record.image
    return {
        "task_id": record.task_id,
        "dataset": image.dataset,
        "image_id": image.id,
        "patient": image.group,
        "modality": record.modality,
        "finding": record.finding,
        "direction": record.direction.value,
        "outcome": record.state.value,
        "success_round": record.round if record.state is TaskState.SUCCESS else None,
        "generation": record.generation,
        "source_labels": list(image.labels),
        "source_ref": f"{image.dataset}/{image.id}"
        + (f"@{image.source_sha256}" if image.source_sha256 else ""),
        "original_sha256": image.prepared_sha256 or None,
        "licence": image.licence.value,
        "synthetic_source": image.synthetic,
    }


def evidence_of(verdict: Verdict | None) -> str | None:
    """Return a verdict's criteria with evidence, confidence and codes as JSON; None without a verdict."""
    if verdict is None:
        return None
    return dumps(verdict.observations.criteria).decode()
