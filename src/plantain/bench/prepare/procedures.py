"""Procedures by organ that a collector of real pairs can look for: our list, longer where a model is asked."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from plantain.bench.benchmark.organs import canonical_organ
from plantain.records import InputError


@cache
def listed_procedures() -> dict[str, tuple[str, ...]]:
    """Our own list, by organ in the order of MedEBench's tables."""
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {organ: tuple(procedures) for organ, procedures in data.items()}


def procedures_of(organ: str) -> tuple[str, tuple[str, ...]]:
    """An organ's canonical name and its procedures.

    Raises:
        InputError: none of our organs.
    """
    name, remark = canonical_organ(organ)
    if name not in listed_procedures():
        raise InputError(f"organ {organ!r}: {remark}; there are {', '.join(listed_procedures())}")
    return name, listed_procedures()[name]
