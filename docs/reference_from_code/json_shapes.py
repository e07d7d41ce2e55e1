"""The page of JSON output, from real output (`make shapes`)."""

from __future__ import annotations

import json
from pathlib import Path

from reference_from_code.markdown import cell, code, table

SHAPES = Path(__file__).with_name("json_shapes.json")


def json_page() -> str:
    """The page: a table of paths and types for each command."""
    parts = [
        "# Shapes of JSON output\n",
        "What each command printed after a walk through these pages, as paths. `rows[].id` is the `id` of every "
        "item of the list `rows`. `NAME` is a variable key, such as a finding or model. Below "
        "a list or an object that was empty there are no paths. What all commands have in common: "
        "[JSON output](../json.md).\n",
    ]
    for command, paths in json.loads(SHAPES.read_text(encoding="utf-8")).items():
        words = command.split()
        name = " ".join(words[:2] if words[0] in ("bench", "review", "train", "release") else words[:1])
        parts += [f"## {name}\n", f"```sh\nplantain {command} --json\n```\n"]
        parts.append(table(["path", "type"], ([code(path), cell(kinds)] for path, kinds in paths.items())))
    return "\n".join(parts)
