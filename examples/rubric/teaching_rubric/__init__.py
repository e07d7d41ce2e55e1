"""A rubric of its own, for `rubric = "teaching"` in a recipe."""

from pathlib import Path

RUBRIC = Path(__file__).with_name("teaching.toml")
