"""`plantain train judge`: a vision-language model on this machine learns to judge from verdicts."""

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
from plantain.models.hosted.writer_and_judge import HostedJudge
from plantain.models.vlm.conversation import LocalConversation
from plantain.models.vlm.local import find_local
from plantain.runs.settings.terms import load_terms
from plantain.train.judge.judge_plan import LEAST, JudgeObserver, JudgePlan
from plantain.train.judge.judge_run import CONVERSATIONS, JudgeResult, export_verdicts, train_judge
from plantain.train.judge.verdicts import verdicts_of

app = application()
STOPPED = 3


@app.command()
def judge(
    folder: Annotated[Path, typer.Argument(metavar="RUN|RELEASE", help="whose verdicts are learned")],
    base: Annotated[
        str, typer.Option("--base", metavar="FOLDER", help="a vision-language model of transformers")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="a new folder, or one to go on with")],
    verdicts_by: Annotated[
        str, typer.Option("--judge", metavar="NAME", help="whose verdicts; default: those that decided")
    ] = "",
    originals: Annotated[
        Path | None,
        typer.Option(help="run or catalogue with a release's originals; default: those that it carries"),
    ] = None,
    steps: Annotated[int, typer.Option(help="of training")] = 1000,
    lora: Annotated[int, typer.Option("--lora", metavar="RANK", help="of the adapters")] = 16,
    rate: Annotated[float, typer.Option(help="learning rate")] = 1e-4,
    batch: Annotated[int, typer.Option(help="verdicts per step")] = 8,
    side: Annotated[
        int | None, typer.Option(help="longer side at which pictures are shown; default: as they are")
    ] = None,
    held_out: Annotated[float, typer.Option(help="share of the groups that are only measured on")] = 0.2,
    least: Annotated[int, typer.Option(help="verdicts that passed, and that did not, to learn from")] = LEAST,
    every: Annotated[int, typer.Option(help="steps between checkpoints")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="of split, order and first weights")] = 0,
    settings: Annotated[Path | None, typer.Option(help="TOML with [providers.vlm]")] = None,
    only_export: Annotated[
        bool, typer.Option("--export-only", help="write the conversations and train nothing")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="how it ended, as JSON")] = False,
) -> int:
    """Trains a vision-language model (LoRA) to answer as a judge did: the same question, the verdict as its answer.

    The base must lie on this machine; no picture leaves it. Patients and pictures stay on one side of the split. The
    trained folder judges as vlm/DIR/judge. Ctrl-C keeps what is trained; the same command goes on.

    Example: plantain train judge runs/pilot --base models/SmolVLM-256M-Instruct --out judges/mine
    """
    plan = JudgePlan(steps, held_out, lora, rate, batch, side, least, seed, every)
    plan.check()
    name = f"vlm/{base.removeprefix('vlm/')}"
    options = load_terms(settings, (name,)).provider(name).options()
    local = find_local(name, options)
    words = HostedJudge(LocalConversation(local), options)
    source = verdicts_of(folder, verdicts_by, originals)
    if only_export:
        learned, watched = export_verdicts(source, words, plan, out)
        return _print(JudgeResult(None, out / CONVERSATIONS, len(learned), len(watched)), as_json)
    require_extra("plantain train judge", "torch", "torch", "transformers", "peft")
    with TrainingBar(quiet=as_json) as bar, stopping_on_ctrl_c(bar.say) as stop:
        observer = JudgeObserver(bar.begin, bar.step)
        result = train_judge(source, local, options, plan, out, observer=observer, stop=stop)
    if result.model is None:
        typer.echo("plantain: stopped (interrupted); type the same command to go on", err=True)
        return STOPPED
    return _print(result, as_json)


def _print(result: JudgeResult, as_json: bool) -> int:
    if as_json:
        document = {
            "model": str(result.model) if result.model else None,
            "conversations": str(result.conversations),
            "learned": result.learned,
            "held_out": result.held_out,
            "held_out_loss": {"before": result.before, "after": result.after},
            "held_out_decisions": asdict(result.decisions) if result.decisions else None,
        }
        typer.echo(orjson.dumps(document).decode())
        return 0
    typer.echo(
        f"conversations: {result.conversations} ({result.learned} to learn from, {result.held_out} held out)"
    )
    if result.model is not None:
        typer.echo(f"held-out loss: {result.before:.4f} before, {result.after:.4f} after")
        typer.echo(f"held-out edits: {result.decisions}")
        typer.echo(f"judge: vlm/{result.model}\nits card: plantain audit --judge vlm/{result.model}")
    return 0
