"""Bounds on the unpacked size of a Parquet file from others: a few kilobytes may claim gigabytes."""

from __future__ import annotations

import pyarrow.parquet as pq

ROOM = 32 << 20
"""Bytes that a column of one row group may always unpack to: our writer ends a group at about as many."""

MOST = 100
"""Beyond that, how many bytes may come out of one; records as JSON unpack to about ten, images to one."""


def unpacks_too_far(file: pq.ParquetFile, columns: frozenset[str] | None = None) -> str:
    """Return why a file must not be read, in a sentence without its subject; "" if it may be.

    Args:
        file: opened, unread.
        columns: top-level names of those that will be read; None for all.
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
