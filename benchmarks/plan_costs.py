"""Cost and time of a build of 10,000 images (or of the number given), as the table on docs/questions.md.

One normal photograph stands for all: a plan counts tasks, and never looks at pixels. Prices are those of our table.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from plantain.catalogue.store import Catalogue
from plantain.pipeline.forecast import forecast
from plantain.pipeline.recipe import load_recipe
from plantain.sources.samples import sample_images

IMAGES = 10_000
HOSTED = {
    "Gemini Flash edits, Gemini Pro judges": (
        "gemini/gemini-3.1-pro-preview",
        "gemini/gemini-3.1-flash-image",
        "gemini/gemini-3.1-pro-preview",
    ),
    "Gemini Flash edits, OpenAI judges": (
        "gemini/gemini-3.1-pro-preview",
        "gemini/gemini-3.1-flash-image",
        "openai/gpt-6.2-sol",
    ),
    "OpenAI alone": ("openai/gpt-6.2-sol", "openai/gpt-image-2.5-sunburst", "openai/gpt-6.2-sol"),
    "offline": ("offline/templates", "offline/procedural", "offline/instruments"),
}


def main() -> None:
    """Prints the table as Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        image, data = next(s for s in sample_images() if s.image.modality == "fundus").prepared()
        with Catalogue.create(root / "catalogue") as catalogue:
            for number in range(int(sys.argv[1]) if sys.argv[1:] else IMAGES):
                catalogue.add(replace(image, id=f"i{number:05}", group=f"p{number}"), data)
        print("| models | transport | cost: low | expected | high | time, expected | disk |")
        print("|---|---|---|---|---|---|---|")
        for name, (writer, editor, judge) in HOSTED.items():
            for transport in ("online", "batch") if "offline" not in writer else ("online",):
                sections = "".join(
                    f'[providers.{one}]\ntransport = "{transport}"\n'
                    for one in sorted(
                        {model.partition("/")[0] for model in (writer, editor, judge)} - {"offline"}
                    )
                )
                (root / "recipe.toml").write_text(
                    f'name = "costs"\n[data]\ncatalogue = "catalogue"\nfindings = ["AMD"]\ndirections = ["add"]\n'
                    f'[models]\nwriter = "{writer}"\neditor = "{editor}"\njudge = "{judge}"\n'
                    f"[limits]\nconcurrency = 64\n{sections}",
                    encoding="utf-8",
                )
                made, _ = forecast(load_recipe(root / "recipe.toml"), None)
                cost, time = made.cost_usd, made.duration_s
                dollars = (
                    [f"${c:,.0f}" for c in (cost.low, cost.expected, cost.high)] if cost else ["unknown"] * 3
                )
                hours = f"{time.expected / 3600:,.0f} h" if time else "unknown"
                print(
                    f"| {name} | {transport} | {' | '.join(dollars)} | {hours} | {made.disk.expected / 1e9:,.0f} GB |"
                )


if __name__ == "__main__":
    main()
