"""Rows of the preference table: the columns of Diffusion-DPO, and our own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plantain.release.layouts.columns import Cell, ReleaseColumns, task_cells
from plantain.release.pairs import WITHIN_TASK_SUCCESS, AttemptPair, pairs_of
from plantain.release.pictures import PictureRequest, Pictures, Released
from plantain.release.plan import ReleaseFile
from plantain.release.staging import StagedEntry
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

Slot = tuple[AttemptRecord, Released]


def preference_rows(
    entries: Iterable[StagedEntry], pictures: Pictures, columns: ReleaseColumns
) -> Iterator[tuple[dict[str, Cell], int, list[ReleaseFile]]]:
    """Yield cells, weight in bytes and images of every planned pair."""

    def wanted() -> Iterator[tuple[tuple[StagedEntry, TaskRecord, AttemptPair], list[PictureRequest]]]:
        for entry in entries:
            record = from_json(entry.record)
            pair = next(p for p in pairs_of(record) if (p.chosen, p.rejected) == (entry.first, entry.second))
            requests = [
                PictureRequest(attempt.edited, record.task_id, attempt.round or 0)
                for attempt in (record.attempts[pair.chosen], record.attempts[pair.rejected])
                if attempt.edited is not None
            ]
            yield (entry, record, pair), requests

    for number, ((entry, record, pair), (chosen, rejected)) in enumerate(pictures.stream(wanted())):
        better, worse = record.attempts[pair.chosen], record.attempts[pair.rejected]
        slots: list[Slot] = [(better, chosen), (worse, rejected)]
        if not pair.chosen_first:
            slots.reverse()
        cells = {
            **_pair_cells(record, slots, pair.chosen_first, columns),
            "positive_instruction": better.instruction,
            "negative_instruction": worse.instruction,
            "judge": better.verdict.judge if better.verdict else None,
            "judge_margin": _margin(better, worse),
            **task_cells(record),
            **columns.card_cells(better.verdict),
            "record": entry.record.decode(),
        }
        embedded = [
            image.listed(record.task_id, attempt, attempt.role, row=number, member=f"jpg_{slot}")
            for slot, (attempt, image) in enumerate(slots)
        ]
        yield cells, len(chosen.data) + len(rejected.data), embedded


def _pair_cells(
    record: TaskRecord, slots: list[Slot], chosen_first: bool, columns: ReleaseColumns
) -> dict[str, Cell]:
    (first, first_image), (second, second_image) = slots
    cells: dict[str, Cell] = {
        "jpg_0": first_image.data,
        "jpg_1": second_image.data,
        "label_0": int(chosen_first),
        "caption": f"{record.direction.value.capitalize()} {record.finding}",
        "caption_0": first.instruction,
        "caption_1": second.instruction,
        "same_instruction": first.instruction == second.instruction,
        "pair_kind": WITHIN_TASK_SUCCESS,
    }
    for slot, (attempt, image) in enumerate(slots):
        cells[f"round_{slot}"] = attempt.round
        cells[f"sha256_{slot}"] = image.sha256
        cells |= {f"{name}_{slot}": value for name, value in columns.slot_cells(attempt).items()}
    return cells


def _margin(better: AttemptRecord, worse: AttemptRecord) -> float | None:
    """Return the difference of the judge's scores, in [-1, 1]; null where either is unscored."""
    scores = [one.verdict.score for one in (better, worse) if one.verdict is not None]
    known = [score for score in scores if score is not None]
    return round(known[0] - known[1], 6) if len(known) == 2 else None
