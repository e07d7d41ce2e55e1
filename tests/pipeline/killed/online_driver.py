"""A build with Gemini against a provider on this machine: python online_driver.py CATALOGUE RUN URL [FORM]."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pipeline.quick import NoText
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build

if __name__ == "__main__":
    catalogue, run, url, *form = sys.argv[1:]
    recipe = Recipe.model_validate(
        {
            "name": "online",
            "data": {
                "catalogue": catalogue,
                "findings": ["AMD", "Cataract", "Diabetes"],
                "directions": ["add"],
            },
            "models": {
                "writer": "gemini/gemini-3.8-flash",
                "editor": "gemini/gemini-3.1-flash-image",
                "judge": "gemini/gemini-3.8-flash",
            },
            "loop": {"max_rounds": 3},
            "settings": {"judge": {"form": form[0]}} if form else {},
            "limits": {"concurrency": 6, "budget_usd": 50.0},
            "providers": {"gemini": {"base_url": url}},
        }
    )
    summary = asyncio.run(run_build(recipe, Path(run), text_reader=NoText()))
    print(summary)
    sys.exit(0 if summary.stopped is None else 1)
