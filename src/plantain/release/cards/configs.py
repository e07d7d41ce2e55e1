"""The tables that a dataset card names, from what was planned."""

from __future__ import annotations

from collections import defaultdict

from plantain.release.plan import TableConfig
from plantain.release.splits import SPLITS
from plantain.release.staging import Staging

_LAYOUTS = ("images", "train", "originals", "trajectories", "verdicts", "preference")
_FIRST = ("success", "train", "failed", "trajectories", "preference", "verdicts", "originals")


def table_configs(staging: Staging) -> tuple[TableConfig, ...]:
    """Every Parquet table, and each also by modality and direction; in a fixed order, empty splits left out."""
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    files: dict[str, dict[str, str]] = defaultdict(dict)
    for layout in _LAYOUTS:
        for stem, _, count in staging.shards(layout):
            folder, _, name = stem.rpartition("/")
            part, _, split = name.rpartition("-")
            table = folder.rpartition("/")[2]
            for config, pattern in ((table, "*"), (f"{table}_{part}", part)):
                rows[config][split] = rows[config].get(split, 0) + count
                files[config][split] = f"{folder}/{pattern}-{split}-*.parquet"
    tables = [name for name in _FIRST if name in rows]
    order = tables + sorted(set(rows) - set(tables))
    return tuple(
        TableConfig(
            name,
            {split: (files[name][split],) for split in SPLITS if split in rows[name]},
            {split: rows[name][split] for split in SPLITS if split in rows[name]},
            default=index == 0,
        )
        for index, name in enumerate(order)
    )
