"""1,000 tasks while a fifth of the time, in bursts of ten minutes, a provider answers nothing but 503; simulated time.

Promised: no answer is paid for twice, no task is stopped, and money held for calls of unknown cost is at most 1 % of
what was spent. The same with one request in twenty of a burst broken instead, half of them billed; and with a run that
halts in every burst and is begun again. Then, in real time over loopback, eight seconds of 503 at
the judge of five tasks.

Run: python benchmarks/bursts.py [--images 200]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.pixels.encode import encode_source, normalise
from plantain.roles import EncodedImage
from simulated.bursts import Burst, build_through_bursts
from simulated.pictures import photograph
from soak import fill

FINDINGS = 5
HELD = 0.01
JUDGE_S = 8.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200, help="five tasks each")
    args = parser.parse_args()
    picture = EncodedImage(normalise(encode_source(photograph())), "image/jpeg")
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        catalogue = fill(folder, args.images)
        for name, settings in (
            ("503 alone", {}),
            ("one in twenty broken", {"broken": 0.05}),
            ("halted in every burst", {"outage_hours": 0.05}),
        ):
            came = build_through_bursts(
                catalogue,
                folder / name,
                picture,
                findings=FINDINGS,
                **settings,  # type: ignore[arg-type]
            )
            print(line(name, came), flush=True)
            good &= kept(came)
        small = folder / "small"
        small.mkdir()
        good &= eight_seconds(fill(small, 5), folder / "loopback")
    return 0 if good else 1


def kept(came: Burst) -> bool:
    return not came.paid_again and came.held_usd <= HELD * came.spent_usd and "stopped" not in came.states


def line(name: str, came: Burst) -> str:
    return (
        f"{name}: {came.states}, {came.hours:.1f} h, begun {came.starts} times, {came.seen}; paid for twice "
        f"{came.paid_again}; spent ${came.spent_usd:.2f}, held ${came.held_usd:.4f} "
        f"({100 * came.held_usd / came.spent_usd:.3f} %), the provider's bill ${came.bill_usd:.2f}"
    )


def eight_seconds(catalogue: Path, run: Path) -> bool:
    """Five tasks whose judge answers 503 for eight seconds from its first request on; whether all went on."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from fakes.faults import status
    from fakes.gemini_format import gemini_route, step_of
    from fakes.server import KEY, Answer, FakeProvider, Request

    refuse = status(503, "the model is overloaded", "UNAVAILABLE", "overloaded")("gemini")
    began: list[float] = []
    refused: list[str] = []

    def spoil(request: Request, good: Answer) -> Answer:
        if step_of(request) != "judge" or request.method != "POST":
            return good
        began.append(request.at)
        if request.at > began[0] + JUDGE_S:
            return good
        refused.append("503")
        assert refuse is not None
        return refuse(request, good)

    os.environ["GEMINI_API_KEY"] = KEY
    with FakeProvider([gemini_route], spoil=spoil) as provider:
        recipe = Recipe.model_validate(
            {
                "name": "eight seconds",
                "data": {
                    "catalogue": catalogue,
                    "findings": ["AMD"],
                    "directions": ["add"],
                    "check_text": False,
                },
                "models": {"writer": "gemini/w", "editor": "gemini/e", "judge": "gemini/j"},
                "loop": {"max_rounds": 1},
                "providers": {"gemini": {"base_url": provider.url}},
            }
        )
        summary = asyncio.run(run_build(recipe, run))
        asked = Counter(step_of(call) for call in provider.calls if call.method == "POST")
    states = {state.value: n for state, n in summary.closed.items()}
    print(
        f"8 s of 503 at the judge, in real time: {len(refused)} requests refused; tasks {states}; "
        f"writers asked {asked['write']} times, editors {asked['edit']} times for 5 tasks"
    )
    return "stopped" not in states and asked["write"] == asked["edit"] == 5 and summary.stopped is None


if __name__ == "__main__":
    sys.exit(main())
