"""Facts of a made-up run, for texts about it."""

from __future__ import annotations

from plantain.release.plan import RunFacts


def facts() -> RunFacts:
    """Return the facts of a run with a hosted editor."""
    return RunFacts(
        run_id="00112233",
        name="pilot",
        seed=7,
        code_version="0.1.0",
        frozen={"loop": {"policy": "weighted", "threshold": 0.7, "max_rounds": 5}},
        models={
            "write": [["gemini/gemini-3-pro", "gemini-3-pro-001"]],
            "edit": [["gemini/gemini-3.1-flash-image", ""]],
            "judge": [["gemini/gemini-3-pro", "gemini-3-pro-001"]],
        },
        tasks={"success": 3, "failed": 1},
        left_out=2,
        pairs=1,
        splits={"train": 4, "validation": 0, "test": 0},
        split_groups=2,
        ungrouped_images=1,
    )
