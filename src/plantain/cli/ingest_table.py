"""What `plantain ingest` says of a table's columns and of whose the images are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plantain.catalogue.ingest import Ingested
from plantain.pixels.decode import one_line
from plantain.records.counts import counted
from plantain.sources.entries import TableRead

_MOST = 12
"""Unused columns, and groups that cross splits, that are named."""


def table_line(table: TableRead) -> str:
    """Which columns of a table tell what, and which tell nothing."""
    columns = table.columns
    roles = (
        ("file", columns.file),
        ("labels", columns.labels),
        ("group", columns.group),
        ("split", columns.split),
        ("sequence", columns.sequence),
        ("plane", columns.plane),
    )
    used = ", ".join(f"{role} from {one_line(name)!r}" for role, name in roles if name is not None)
    if columns.marked:
        used += f", labels from the columns {_some(columns.marked)} (1: there; 0, -1 or empty: not)"
    unused = f"; not used: {_some(columns.unused)}" if columns.unused else ""
    grouped = (
        f"; {counted(table.grouped, 'picture')} of {counted(table.groups, 'group')}" if table.grouped else ""
    )
    return f"{one_line(table.name)}: {used}{grouped}{unused}"


def group_remarks(
    done: Ingested, crossed: Sequence[tuple[str, tuple[str, ...]]], *, takes_table: bool
) -> Iterator[str]:
    """What a person must know of the groups, one line each.

    Args:
        done: the ingest.
        crossed: groups of the catalogue that its sources put into several splits.
        takes_table: whether this kind of source takes a table from a person.
    """
    for table in done.tables:
        columns = table.columns
        if table.grouped and not columns.patient:
            whose = f"column {one_line(columns.group)!r}" if columns.group else "names of folders"
            yield f"{one_line(table.name)}: groups come from {whose}, not from a column of patients" + _other(
                table
            )
        if table.groups == 1 < table.grouped:
            yield f"{one_line(table.name)}: every picture is of one and the same group, so that no split can part them"
    if done.ungrouped:
        without_groups = [table for table in done.tables if table.columns.group is None]
        if without_groups:
            how = f"; {one_line(without_groups[0].name)} has no column of patients" + _other(
                without_groups[0]
            )
        else:
            how = "; tell whose they are in the table's column group, and ingest again" if takes_table else ""
        yield (
            f"{counted(done.ungrouped, 'image')} without a known patient: pictures of one patient may come to "
            f"both sides of a split, "
            f"and a patient who withdraws must be found picture by picture (plantain withdraw --image){how}"
        )
    if done.by_study:
        yield (
            f"{counted(done.by_study, 'image')} without a known patient (PatientID is missing or a placeholder), "
            f"grouped by study: images of one patient may come to both sides of a split"
        )
    if crossed:
        named = "; ".join(f"{one_line(group)} in {' and '.join(splits)}" for group, splits in crossed[:_MOST])
        rest = f"; and {len(crossed) - _MOST} more" if len(crossed) > _MOST else ""
        number = counted(len(crossed), "group crosses", "groups cross")
        yield f"{number} the splits that the source gave: {named}{rest}"


def _other(table: TableRead) -> str:
    """How to name another column."""
    if not table.columns.unused:
        return ""
    return f": if one of these is, say --column group=NAME: {_some(table.columns.unused)}"


def _some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(repr(one_line(name)) for name in names[:_MOST]) + rest
