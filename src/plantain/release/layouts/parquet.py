"""The Parquet layouts: tables of edits and preference pairs with images, as `datasets.load_dataset` reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from plantain.journal import JsonValue
from plantain.release.layouts.columns import (
    IMAGE,
    Cell,
    ReleaseColumns,
    columns_of,
    evidence_of,
    task_cells,
)
from plantain.release.layouts.contract import Layout, original_of
from plantain.release.plan import ORIGINAL, ReleaseFile
from plantain.release.released_images import ImageRequest, ReleasedImages
from plantain.release.staging import HashingFile, StagedEntry, Staging
from plantain.release.task_record import (
    AttemptPair,
    AttemptRecord,
    TaskRecord,
    from_json,
    pairs_of,
)

GROUP_BYTES = 32_000_000
GROUP_ROWS = 100
"""Largest row group: viewers of hubs fail on larger ones, and memory stays flat."""

Row = tuple[dict[str, Cell], int, list[ReleaseFile]]
"""Cells, their weight in bytes, and the images among them."""


def write_tables(staging: Staging, released: ReleasedImages) -> None:
    """Write all planned Parquet tables.

    A row of `data/success`, `data/failed` and the like is an edited image, in `success` with its original; of `train` a
    success whose original is released; of `originals` a source image; of `trajectories` a task; of `verdicts` a judge's
    verdict on an attempt; of `preference` a pair, in the columns of Diffusion-DPO.
    """
    columns = columns_of(staging.facts.frozen)
    rows: dict[str, Callable[[Iterable[StagedEntry]], Iterator[Row]]] = {
        "originals": lambda entries: _original_rows(entries, staging, released),
        "images": lambda entries: _edit_rows(entries, staging, released, columns, "image"),
        "train": lambda entries: _edit_rows(entries, staging, released, columns, "edited"),
        "trajectories": lambda entries: _trajectory_rows(entries, columns),
        "verdicts": lambda entries: _verdict_rows(entries, columns),
        "preference": lambda entries: preference_rows(entries, released, columns),
    }
    for layout, rows_of in rows.items():
        for stem, shards, _ in staging.shards(layout):
            schema = columns.table(stem.split("/")[1])
            for shard in range(shards):
                fill = partial(_fill, schema=schema, rows=rows_of(staging.entries(layout, stem, shard)))
                role = "record" if layout in ("trajectories", "verdicts") else "shard"
                staging.write(f"{stem}-{shard:05d}-of-{shards:05d}.parquet", role, fill)


def _fill(file: HashingFile, schema: pa.Schema, rows: Iterator[Row]) -> Iterator[ReleaseFile]:
    schema = _with_features(schema)
    # Neither dictionaries nor statistics: for those, images would be in memory twice.
    with pq.ParquetWriter(
        file, schema, compression="zstd", use_dictionary=False, write_statistics=False
    ) as writer:
        group: list[dict[str, Cell]] = []
        weight = 0
        for cells, size, embedded in rows:
            yield from embedded
            group.append(cells)
            weight += size
            if weight >= GROUP_BYTES or len(group) == GROUP_ROWS:
                writer.write_table(_table(group, schema))
                group, weight = [], 0
        if group:
            writer.write_table(_table(group, schema))


def _with_features(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the key by which `datasets` decodes images, also when it is read as plain Parquet."""
    features = {field.name: _feature(field.type) for field in schema}
    metadata = orjson.dumps({"info": {"features": features}})
    return schema.with_metadata({"huggingface": metadata})


def _feature(kind: pa.DataType) -> JsonValue:
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    name = {"double": "float64"}.get(str(kind), str(kind))
    return {"dtype": name, "_type": "Value"}


def _table(group: list[dict[str, Cell]], schema: pa.Schema) -> pa.Table:
    columns = [pa.array([row[field.name] for row in group], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _edit_rows(
    entries: Iterable[StagedEntry],
    staging: Staging,
    released: ReleasedImages,
    columns: ReleaseColumns,
    edited: str,
) -> Iterator[Row]:
    """Yield a row for every planned attempt, its image in the column `edited`; of successes with their original."""

    def wanted() -> Iterator[tuple[tuple[TaskRecord, AttemptRecord, list[str]], list[ImageRequest]]]:
        for entry in entries:
            record = from_json(entry.record)
            attempt = record.attempts[entry.first]
            success = attempt.role == "success"
            named = {
                edited: attempt.edited,
                "mask": attempt.mask if attempt.mask and released.holds(attempt.mask) else None,
                ORIGINAL: staging.original(record.image.prepared_sha256) if success else None,
            }
            requests = [
                (image, (record.task_id, attempt.round or 0) if column == edited else None)
                for column, image in named.items()
                if image is not None
            ]
            yield (record, attempt, [column for column, one in named.items() if one is not None]), requests

    for number, ((record, attempt, named), images) in enumerate(released.stream(wanted())):
        cells: dict[str, Cell] = {
            "mask": None,
            ORIGINAL: None,
            **task_cells(record),
            **columns.attempt_cells(attempt),
            "sha256": images[0].sha256,
            "evidence": evidence_of(attempt.verdict),
        }
        stem = f"{record.task_id}-g{attempt.generation}-r{attempt.round or 0}"
        listed = []
        for column, image in zip(named, images, strict=True):
            name = stem if column == edited else f"{stem}-{column}"
            ending = "png" if column == "mask" else "jpeg"
            cells[column] = {"bytes": image.data, "path": f"{name}.{ending}"}
            role = attempt.role if column == edited else column
            listed.append(image.listed(record.task_id, attempt, role, row=number, member=column))
        yield cells, sum(len(image.data) for image in images), listed


def _original_rows(
    entries: Iterable[StagedEntry], staging: Staging, released: ReleasedImages
) -> Iterator[Row]:
    originals = (original_of(staging, entry) for entry in entries)
    wanted = ((one, [(one, None)]) for one in originals)
    for number, (original, (image,)) in enumerate(released.stream(wanted)):
        path, known = staging.described_original(original.sha256)
        cells: dict[str, Cell] = orjson.loads(known)
        cells["image"] = {"bytes": image.data, "path": path.rpartition("/")[2]}
        yield cells, len(image.data), [image.listed(None, None, ORIGINAL, row=number, member="image")]


def _verdict_rows(entries: Iterable[StagedEntry], columns: ReleaseColumns) -> Iterator[Row]:
    for entry in entries:
        record = from_json(entry.record)
        attempt = record.attempts[entry.first]
        yield columns.row_of_verdict(record, attempt, attempt.verdicts[entry.second]), 4000, []


def _trajectory_rows(entries: Iterable[StagedEntry], columns: ReleaseColumns) -> Iterator[Row]:
    for entry in entries:
        record = from_json(entry.record)
        cells: dict[str, Cell] = {
            **task_cells(record),
            "rounds": [columns.attempt_cells(attempt) for attempt in record.attempts],
            "record": entry.record.decode(),
        }
        yield cells, 8 * len(entry.record), []


def preference_rows(
    entries: Iterable[StagedEntry], released: ReleasedImages, columns: ReleaseColumns
) -> Iterator[Row]:
    """Yield the row of every planned preference pair."""

    def wanted() -> Iterator[tuple[tuple[StagedEntry, TaskRecord, AttemptPair], list[ImageRequest]]]:
        for entry in entries:
            record = from_json(entry.record)
            pair = next(p for p in pairs_of(record) if (p.chosen, p.rejected) == (entry.first, entry.second))
            requests: list[ImageRequest] = [
                (attempt.edited, (record.task_id, attempt.round or 0))
                for attempt in (record.attempts[pair.chosen], record.attempts[pair.rejected])
                if attempt.edited is not None
            ]
            yield (entry, record, pair), requests

    for number, ((entry, record, pair), (chosen, rejected)) in enumerate(released.stream(wanted())):
        better, worse = record.attempts[pair.chosen], record.attempts[pair.rejected]
        slots = [(better, chosen), (worse, rejected)]
        if not pair.chosen_first:
            slots.reverse()
        cells: dict[str, Cell] = {
            **task_cells(record),
            "label_0": int(pair.chosen_first),
            "caption": f"{record.direction.value.capitalize()} {record.finding}",
            "same_instruction": better.instruction == worse.instruction,
            "judge": better.verdict.judge if better.verdict else None,
            "record": entry.record.decode(),
        }
        embedded = []
        for slot, (attempt, image) in enumerate(slots):
            verdict = columns.verdict_cells(attempt.verdict)
            cells[f"jpg_{slot}"] = image.data
            cells[f"caption_{slot}"] = attempt.instruction
            cells[f"round_{slot}"] = attempt.round
            cells[f"sha256_{slot}"] = image.sha256
            cells[f"score_{slot}"] = verdict["score"]
            cells[f"qualified_{slot}"] = verdict["qualified"]
            embedded.append(
                image.listed(record.task_id, attempt, attempt.role, row=number, member=f"jpg_{slot}")
            )
        yield cells, len(chosen.data) + len(rejected.data), embedded


LAYOUT = Layout(write_tables)
"""Also the layout `preference`: only planned tables are written."""
