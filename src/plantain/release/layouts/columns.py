"""Columns of the Parquet tables: their types, the types that `datasets` reads from the file, and rows for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

import orjson
import pyarrow as pa

from plantain.findings import load_taxonomy
from plantain.journal.payload import dumps
from plantain.records import Direction, JudgeCard, Rubric, Verdict
from plantain.release.raters import PEOPLE, Ratings, kept_cards, kept_ratings, rating_of
from plantain.release.staging import Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, VerdictRecord
from plantain.rubrics import recorded

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
    "original_sha256": pa.string(),
    "licence": pa.string(),
    "synthetic_source": pa.bool_(),
    "canary": pa.string(),
}
"""What every table says of the task. `source_ref` names the source image, `original_sha256` its prepared picture, which
is the key of the table `originals` where the release carries it."""

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
}
"""One attempt, without its verdict. `labels_after` is null unless it succeeded; see `labels_after`."""

INSTRUCTIONS: Mapping[str, pa.DataType] = {
    "positive_instructions": pa.list_(pa.string()),
    "negative_instructions": pa.list_(pa.string()),
}
"""Of the task: the instruction whose edit qualified, and those whose edits were judged and did not."""

PLAUSIBLE_NORMAL = "plausible normal, not this patient"
"""The label of an image from which the last finding was removed: nobody knows what lay under it."""

ORIGINAL_TABLE = pa.schema(
    {
        "sha256": pa.string(),
        "image_id": pa.string(),
        "dataset": pa.string(),
        "shared_by": pa.list_(pa.string()),
        "modality": pa.string(),
        "labels": pa.list_(pa.string()),
        "licence": pa.string(),
        "terms": pa.string(),
        "credit": pa.string(),
        "synthetic": pa.bool_(),
        "image": IMAGE,
    }
)
"""One original a row, each picture once. `licence` is its owner's class, `terms` their licence, `shared_by` every
image, as DATASET/ID, that has this very picture."""


CARD: Mapping[str, pa.DataType] = {"judge_standing": pa.string(), "judge_card": pa.string()}
"""What the card of the judge says that its verdicts may be used for ("may qualify", "may rank", "neither"), and where
the card lies in the release; null where nobody has measured the judge."""


class ReleaseColumns:
    """The tables of one run: criteria and facts are those of its rubric.

    Args:
        rubric: of the run.
        cards: what the release carries, by path.
        people: what readers said of edits.

    Attributes:
        tables: the schema of every table by its folder's name.
        criteria: column of each criterion, by its name; one with a scale has a second column, NAME_value.
        facts: column of each fact that the rubric asks for, by its name.
    """

    def __init__(
        self,
        rubric: Rubric,
        cards: Mapping[str, JudgeCard] = MappingProxyType({}),
        people: Ratings = MappingProxyType({}),
    ) -> None:
        self._rubric = rubric.name
        self._cards, self._people = cards, people
        fixed = {*TASK, *ATTEMPT, *_JUDGED, *_SAID, *INSTRUCTIONS, *CARD, *PEOPLE, *_PICTURES}
        self.criteria = {c.name: _unlike(c.name, fixed, "criterion") for c in rubric.criteria}
        self.facts = {name: _unlike(name, {*fixed, *self.criteria.values()}, "fact") for name in rubric.facts}
        self._values = {c.name: f"{self.criteria[c.name]}_value" for c in rubric.criteria if c.scale}
        self._passed = {column: pa.bool_() for column in self.criteria.values()}
        self.verdict: Mapping[str, pa.DataType] = {
            **_JUDGED,
            **self._passed,
            **dict.fromkeys(self._values.values(), pa.float64()),
            **dict.fromkeys(self.facts.values(), pa.bool_()),
            **_SAID,
        }
        attempt = {**ATTEMPT, **self.verdict}
        image = {**TASK, **attempt, "evidence": pa.string(), "image": IMAGE, "mask": IMAGE, **CARD, **PEOPLE}
        self._image = pa.schema(image)
        self.tables: Mapping[str, pa.Schema] = {
            "success": pa.schema({**image, **INSTRUCTIONS, "original": IMAGE}),
            "train": pa.schema(
                {
                    "original": IMAGE,
                    "instruction": pa.string(),
                    "edited": IMAGE,
                    "mask": IMAGE,
                    **TASK,
                    "sha256": pa.string(),
                    "labels_after": pa.list_(pa.string()),
                    **INSTRUCTIONS,
                    **self.verdict,
                    **CARD,
                    **PEOPLE,
                }
            ),
            "verdicts": pa.schema(
                {
                    **TASK,
                    "attempt_generation": pa.int16(),
                    "round": pa.int8(),
                    "superseded": pa.bool_(),
                    "instruction": pa.string(),
                    "sha256": pa.string(),
                    "draw": pa.int16(),
                    "decisive": pa.bool_(),
                    **self.verdict,
                    "evidence": pa.string(),
                    **CARD,
                }
            ),
            "trajectories": pa.schema(
                {**TASK, **INSTRUCTIONS, "rounds": pa.list_(pa.struct(attempt)), "record": pa.string()}
            ),
            "preference": pa.schema(self._preference()),
            "originals": ORIGINAL_TABLE,
        }

    def table(self, name: str) -> pa.Schema:
        """The schema of a table; of one that is not in `tables`, that of edited images."""
        return self.tables.get(name, self._image)

    def _preference(self) -> Mapping[str, pa.DataType]:
        slot = {
            "round": pa.int8(),
            "sha256": pa.string(),
            "judge": pa.string(),
            "score": pa.float64(),
            "qualified": pa.bool_(),
            **self._passed,
        }
        return {
            "jpg_0": pa.binary(),
            "jpg_1": pa.binary(),
            "label_0": pa.int8(),
            "caption": pa.string(),
            "caption_0": pa.string(),
            "caption_1": pa.string(),
            "positive_instruction": pa.string(),
            "negative_instruction": pa.string(),
            "same_instruction": pa.bool_(),
            "pair_kind": pa.string(),
            "judge": pa.string(),
            "judge_margin": pa.float64(),
            **{f"{name}_{number}": kind for number in (0, 1) for name, kind in slot.items()},
            **TASK,
            "record": pa.string(),
            **CARD,
        }

    # --- cells --------------------------------------------------------------------------------------

    def attempt_cells(self, record: TaskRecord, attempt: AttemptRecord) -> dict[str, Cell]:
        """Values of an attempt and of the verdict that decided it."""
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
            **self.verdict_cells(attempt.verdict),
        }

    def verdict_cells(self, verdict: Verdict | None) -> dict[str, Cell]:
        """Values of the columns of a verdict; all null where nobody judged."""
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

    def card_cells(self, verdict: Verdict | None) -> dict[str, Cell]:
        """Values of the columns of CARD for the judge of a verdict."""
        judge = verdict.judge if verdict else None
        for path, card in self._cards.items():
            if (card.judge, card.rubric) == (judge, self._rubric):
                return {"judge_standing": card.gate.standing, "judge_card": path}
        return dict.fromkeys(CARD)

    def people_cells(self, record: TaskRecord, attempt: AttemptRecord) -> dict[str, Cell]:
        """Values of the columns of PEOPLE."""
        rating = rating_of(self._people, record, attempt)
        if rating is None:
            return dict.fromkeys(PEOPLE)
        criteria: list[dict[str, Cell]] = [
            {"criterion": one.criterion, "held": one.held, "rating": one.rating} for one in rating.criteria
        ]
        return {
            "people_study": rating.study,
            "people_readers": rating.readers,
            "people_accepted": rating.accepted,
            "people_criteria": criteria,
        }

    def row_of_verdict(
        self, record: TaskRecord, attempt: AttemptRecord, stored: VerdictRecord
    ) -> dict[str, Cell]:
        """A row of the table `verdicts`: what one judge said of one attempt, whether or not it decided."""
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
            **self.card_cells(stored.verdict),
        }

    def slot_cells(self, attempt: AttemptRecord) -> dict[str, Cell]:
        """Of a verdict, what a pair says of each side."""
        seen = self.verdict_cells(attempt.verdict)
        return {name: seen[name] for name in ("judge", "score", "qualified", *self._passed)}


_JUDGED: Mapping[str, pa.DataType] = {
    "judge": pa.string(),
    "qualified": pa.bool_(),
    "qualified_all_pass": pa.bool_(),
    "qualified_weighted": pa.bool_(),
    "score": pa.float64(),
}
_SAID: Mapping[str, pa.DataType] = {
    "opinion": pa.bool_(),
    "codes": pa.list_(pa.string()),
    "reason": pa.string(),
}
_PICTURES = ("evidence", "image", "mask", "original", "edited", "record", "rounds")


def columns_of(frozen: Mapping[str, object]) -> ReleaseColumns:
    """The columns of a run by what it froze. Raises InputError, KeyError, TypeError: its rubric cannot be read."""
    return ReleaseColumns(recorded(frozen))


def planned_columns(staging: Staging) -> ReleaseColumns:
    """The columns of an unfinished release."""
    frozen = orjson.loads(staging.meta("facts") or "{}").get("frozen", {})
    return ReleaseColumns(recorded(frozen), kept_cards(staging), kept_ratings(staging))


def _unlike(name: str, taken: Collection[str], prefix: str) -> str:
    """A column's name that no other column has."""
    return f"{prefix}_{name}" if name in taken else name


def instruction_cells(record: TaskRecord) -> dict[str, Cell]:
    """Values of the columns of INSTRUCTIONS; of the current generation only."""
    positive, negative = [], []
    for attempt in record.attempts:
        if attempt.instruction and not attempt.superseded:
            if attempt.role == "success":
                positive.append(attempt.instruction)
            elif attempt.role == "failed":
                negative.append(attempt.instruction)
    return {"positive_instructions": positive, "negative_instructions": negative}


def original_cells(description: bytes, picture: bytes, name: str) -> dict[str, Cell]:
    """A row of ORIGINAL_TABLE, of what the plan says of the original."""
    cells: dict[str, Cell] = orjson.loads(description)
    return {**cells, "image": {"bytes": picture, "path": name}}


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
        "original_sha256": image.prepared_sha256 or None,
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


def evidence_of(verdict: Verdict | None) -> str | None:
    """What the judge wrote on each criterion, with its confidence and codes, as JSON."""
    if verdict is None:
        return None
    return dumps(verdict.observations.criteria).decode()
