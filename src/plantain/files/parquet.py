"""Read Parquet files that need not be trusted: errors become one line, and small files may not unpack to gigabytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plantain.files.installed import install_line
from plantain.files.opening import open_regular
from plantain.records import InputError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

ROOM = 32 << 20
"""Bytes that a column of one row group may always unpack to: our writer ends a group at about as many."""

MOST = 100
"""Beyond that, how many bytes may come out of one; records as JSON unpack to about ten, images to one."""

BATCH = 4
"""Rows at once: a dictionary can make each of them as large as the largest cell."""


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for the block. Raise InputError if it is not readable, also while it is read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(f"{path}: needs pyarrow: {install_line('release')}") from None
    try:
        with open_regular(path, str(path), None) as file, pq.ParquetFile(file) as table:
            names = table.schema_arrow.names
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise InputError(f"{path}: column {twice!r} appears twice")
            yield table
    except (pa.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
        if isinstance(error, InputError):
            raise
        # The last three: text that is not UTF-8, dates and time zones that do not exist.
        why = " ".join(str(error).split())[:300]
        raise InputError(f"{path}: not a readable Parquet file ({why})") from error


def header_of(path: Path) -> list[str]:
    """Return the column names of a Parquet table. Raise InputError if it cannot be read."""
    with open_parquet(path) as table:
        return list(table.schema_arrow.names)


def rows_of_table(path: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield each row of a Parquet table as {column: value}, reading only the named columns.

    Raises:
        InputError: a column is missing, the table cannot be read, or it unpacks to far more than its file.
    """
    with open_parquet(path) as table:
        if missing := [name for name in columns if name not in table.schema_arrow.names]:
            raise InputError(f"{path}: has no column {missing[0]!r}")
        if too_far := unpacks_too_far(table, frozenset(columns)):
            raise InputError(f"{path}: {too_far}")
        for batch in table.iter_batches(BATCH, columns=list(columns)):
            yield from batch.to_pylist()


def unpacks_too_far(file: pq.ParquetFile, columns: frozenset[str] | None = None) -> str:
    """Return why a file unpacks to too much memory, as the end of a sentence; "" if it does not.

    Args:
        file: the opened file.
        columns: top-level names of the columns that will be read; None for all.
    """
    metadata = file.metadata
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        for number in range(rows.num_columns):
            column = rows.column(number)
            if columns is not None and column.path_in_schema.partition(".")[0] not in columns:
                continue
            packed, unpacked = column.total_compressed_size, column.total_uncompressed_size
            if not 0 <= unpacked <= ROOM + MOST * max(0, packed):
                return f"unpacks {packed:,} bytes of {column.path_in_schema} to {unpacked:,}: refused unread"
    return ""
