"""`plantain train dpo`: preferences of a release, after supervised steps, ended before the winner suffers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application
from plantain.cli.terminal.ctrl_c import stopping_on_ctrl_c
from plantain.cli.train.bar import TrainingBar
from plantain.models.extras import require_extra
from plantain.runs.settings.terms import load_terms
from plantain.train.examples.originals import StoredOriginals
from plantain.train.examples.release_pairs import ReleasePreferences
from plantain.train.preference_plan import BETA, BOUND, Preference, PreferenceObserver, PreferencePlan
from plantain.train.study_plan import LORA_RATE

app = application()
STOPPED = 3


@app.command()
def dpo(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="a release with the preference table")],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="an InstructPix2Pix, Kontext, FLUX.2 klein or Qwen-Image-Edit: diffusers/FOLDER or diffusers/HUB-ID",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="a new folder, or one to go on with")],
    originals: Annotated[
        Path | None, typer.Option(help="run or catalogue with its originals; default: those that it carries")
    ] = None,
    steps: Annotated[int, typer.Option(help="of preference training")] = 400,
    supervised_steps: Annotated[
        int, typer.Option(help="on the winners, before; 0 where the model was fine-tuned already")
    ] = 200,
    lora: Annotated[int, typer.Option("--lora", metavar="RANK", help="of the adapters")] = 8,
    rate: Annotated[float, typer.Option(help="learning rate of preference training")] = 1e-5,
    supervised_rate: Annotated[float, typer.Option(help="learning rate of the supervised steps")] = LORA_RATE,
    beta: Annotated[float, typer.Option(help="strength of the tie to the reference model")] = BETA,
    bound: Annotated[
        float, typer.Option(help="the winner's held-out error may grow to so many times the reference's")
    ] = BOUND,
    held_out: Annotated[float, typer.Option(help="share of the sources that are only watched")] = 0.2,
    side: Annotated[
        int, typer.Option(help="longer side of the canvas, in pixels; the trained editor works at the same")
    ] = 512,
    batch: Annotated[int, typer.Option(help="pairs per step")] = 1,
    every: Annotated[int, typer.Option(help="steps between looks at the held-out pairs")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="of split, order and noise")] = 0,
    settings: Annotated[Path | None, typer.Option(help="TOML with [providers.diffusers]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="how it ended, as JSON")] = False,
) -> int:
    """Trains an editor to prefer what a judge let pass over what it did not: Diffusion-DPO, or Flow-DPO by the model.

    Ends early when the winner's own error on held-out pairs grows beyond the bound. Ctrl-C keeps what is trained; the
    same command goes on.

    Example: plantain train dpo release --model diffusers/runs/ft/models/x --out runs/dpo
    """
    plan = PreferencePlan(
        steps=steps,
        supervised_steps=supervised_steps,
        held_out=held_out,
        side=side,
        lora_rank=lora,
        supervised_rate=supervised_rate,
        rate=rate,
        batch=batch,
        beta=beta,
        bound=bound,
        seed=seed,
        every=every,
    )
    plan.check()
    require_extra("plantain train dpo", "torch", "torch", "diffusers")
    from plantain.train.base import open_base
    from plantain.train.preference_page import write_preference_page
    from plantain.train.preference_run import train_preferences

    source = ReleasePreferences(release, StoredOriginals(originals or release))
    base = open_base(model, load_terms(settings, (model,)).provider(model).options(), adapters=True)
    with TrainingBar(quiet=as_json) as bar, stopping_on_ctrl_c(bar.say) as stop:
        result = train_preferences(source, base, plan, out, observer=_Watch(bar), stop=stop)
    if result.model is None:
        typer.echo("plantain: stopped (interrupted); type the same command to go on", err=True)
        return STOPPED
    page = write_preference_page(result, plan, f"{model} on {source.name}", out)
    if as_json:
        curve = [{"step": step, **asdict(where)} for step, where in result.curve]
        document = {
            "model": str(result.model),
            "pairs": result.pairs,
            "held_out": result.held_out,
            "step": result.step,
            "stopped": result.stopped,
            "curve": curve,
            "report": str(page),
        }
        typer.echo(orjson.dumps(document).decode())
        return 0
    if result.stopped:
        typer.echo(f"ended at step {result.step}: {result.stopped}")
    typer.echo(f"model: {result.model}\nreport: {page}")
    return 0


class _Watch(PreferenceObserver):
    def __init__(self, bar: TrainingBar) -> None:
        self._bar = bar

    def begin(self, part: str, steps: int) -> None:
        self._bar.begin(part, steps)

    def step(self, step: int, loss: float) -> None:
        self._bar.step(step, loss)

    def stands(self, step: int, where: Preference) -> None:
        self._bar.say(
            f"step {step}: held-out accuracy {where.accuracy:.3f}, winner's error {where.winner_ratio:.4f} of the "
            "reference's"
        )
