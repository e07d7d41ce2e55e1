"""The Parquet layout: tables with embedded images, in shards of equal bytes, as `datasets.load_dataset` reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from plantain.release.layouts.columns import (
    IMAGE_TABLE,
    PREFERENCE_TABLE,
    TRAJECTORY_TABLE,
    Cell,
    attempt_cells,
    evidence_of,
    task_cells,
    with_features,
)
from plantain.release.layouts.preference import preference_rows
from plantain.release.pictures import PictureRequest, Pictures
from plantain.release.plan import ReleaseFile
from plantain.release.staging import HashingFile, StagedEntry, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

GROUP_BYTES = 32_000_000
GROUP_ROWS = 100
"""A row group ends at either: viewers of hubs fail on larger ones, and memory stays flat."""

_HEAVY = {"image.bytes", "mask.bytes", "jpg_0", "jpg_1"}
"""JPEG and PNG do not compress further."""

_REPEATED = {"dataset", "modality", "disease", "task", "outcome", "judge"}

Row = tuple[dict[str, Cell], int, list[ReleaseFile]]
"""Cells, their weight in bytes, and the images among them."""


def write_images(staging: Staging, pictures: Pictures) -> None:
    """`data/success`, `data/failed` and the like: one edited image a row."""
    _write(staging, "images", IMAGE_TABLE, lambda entries: _image_rows(entries, pictures))


def write_trajectory_tables(staging: Staging) -> None:
    """`data/trajectories`: one task a row, images by hash."""
    _write(staging, "trajectories", TRAJECTORY_TABLE, _trajectory_rows)


def write_preferences(staging: Staging, pictures: Pictures) -> None:
    """`data/preference`: one pair a row, in the columns of Diffusion-DPO."""
    _write(staging, "preference", PREFERENCE_TABLE, lambda entries: preference_rows(entries, pictures))


def _write(
    staging: Staging, layout: str, schema: pa.Schema, rows: Callable[[Iterable[StagedEntry]], Iterator[Row]]
) -> None:
    for stem, shards, _ in staging.shards(layout):
        for shard in range(shards):

            def fill(file: HashingFile, stem: str = stem, shard: int = shard) -> Iterator[ReleaseFile]:
                return _fill(file, schema, rows(staging.entries(layout, stem, shard)))

            role = "record" if layout == "trajectories" else "shard"
            staging.write(f"{stem}-{shard:05d}-of-{shards:05d}.parquet", role, fill)


def _fill(file: HashingFile, schema: pa.Schema, rows: Iterator[Row]) -> Iterator[ReleaseFile]:
    schema = with_features(schema)
    leaves = {path for field in schema for path in _leaves(field)}
    with pq.ParquetWriter(
        file,
        schema,
        compression={path: "none" if path in _HEAVY else "zstd" for path in sorted(leaves)},
        use_dictionary=[
            path for path in ("dataset", "modality", "disease", "task", "outcome", "judge") if path in leaves
        ],
        write_statistics=sorted(leaves - _HEAVY),
        store_schema=True,
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


def _table(group: list[dict[str, Cell]], schema: pa.Schema) -> pa.Table:
    columns = [pa.array([row[field.name] for row in group], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _leaves(field: pa.Field, above: str = "") -> Iterator[str]:
    path = f"{above}{field.name}"
    if pa.types.is_struct(field.type):
        for inner in field.type:
            yield from _leaves(inner, f"{path}.")
    elif pa.types.is_list(field.type):
        yield from _leaves(field.type.value_field, f"{path}.list.")
    else:
        yield path


def _image_rows(entries: Iterable[StagedEntry], pictures: Pictures) -> Iterator[Row]:
    planned: deque[tuple[TaskRecord, AttemptRecord, bool]] = deque()

    def wanted() -> Iterator[PictureRequest]:
        for entry in entries:
            record = from_json(entry.record)
            attempt = record.attempts[entry.first]
            assert attempt.edited is not None
            masked = attempt.mask is not None and pictures.holds(attempt.mask)
            planned.append((record, attempt, masked))
            yield PictureRequest(attempt.edited, record.task_id, attempt.round or 0)
            if attempt.mask is not None and masked:
                yield PictureRequest(attempt.mask, record.task_id, attempt.round or 0, edited=False)

    stream = pictures.stream(wanted())
    for number, edited in enumerate(stream):
        record, attempt, masked = planned.popleft()
        mask = next(stream) if masked else None
        name = f"{record.task_id}-g{attempt.generation}-r{attempt.round or 0}"
        cells: dict[str, Cell] = {
            **task_cells(record),
            **attempt_cells(record, attempt),
            "sha256": edited.sha256,
            "evidence": evidence_of(attempt),
            "image": {"bytes": edited.data, "path": f"{name}.jpeg"},
            "mask": {"bytes": mask.data, "path": f"{name}-mask.png"} if mask else None,
        }
        embedded = [edited.listed(record.task_id, attempt, attempt.role, row=number, member="image")]
        if mask:
            embedded.append(mask.listed(record.task_id, attempt, "mask", row=number, member="mask"))
        yield cells, len(edited.data) + (len(mask.data) if mask else 0), embedded


def _trajectory_rows(entries: Iterable[StagedEntry]) -> Iterator[Row]:
    for entry in entries:
        record = from_json(entry.record)
        rounds = [attempt_cells(record, attempt) for attempt in record.attempts]
        cells: dict[str, Cell] = {**task_cells(record), "rounds": rounds, "record": entry.record.decode()}
        yield cells, 8 * len(entry.record), []
