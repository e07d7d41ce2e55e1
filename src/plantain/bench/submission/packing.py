"""Packing a submission from a bench run: outputs, scores, judges' replies, seeds, settings and environment."""

from __future__ import annotations

import platform
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import orjson

from plantain.bench.generate.arms import Arm, ArmKind
from plantain.bench.generate.export_outputs import marked
from plantain.bench.generate.runfile import BenchRun, Output
from plantain.bench.score.judging import JUDGES
from plantain.bench.score.pixel_metrics import rows_of
from plantain.bench.submission.bundle import (
    OUTPUTS,
    PAIRS,
    PICTURES,
    REPLIES,
    SCORES,
    BundleHeader,
    BundleWriter,
    ComparisonRow,
    OutputRow,
    ReplyRow,
    ScoreRow,
)
from plantain.journal.cards import as_json, cards_of
from plantain.records import InputError, Licence, Step
from plantain.version import __version__

_TOLD = ("numpy", "opencv-python-headless", "pillow", "scikit-image", "torch", "diffusers", "lpips")
"""Packages that numbers can depend on."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What went into a bundle."""

    path: Path
    arms: int
    outputs: int
    without_image: int
    scores: int
    replies: int


def pack_run(
    run: Path,
    out: Path,
    *,
    arms: Collection[str] = (),
    name: str = "",
    models: Mapping[str, str] | None = None,
    pairs: Sequence[ComparisonRow] = (),
    restricted: bool = False,
) -> Packed:
    """Writes a submission.

    Args:
        run: a scored bench run.
        out: a new folder.
        arms: labels; none for every arm but the baselines, whose pictures are the benchmark's own.
        name: of the submission; default the run's folder.
        models: a line on the model of an arm, by label.
        pairs: comparisons of a reader study of this run.
        restricted: pack edits of pictures too whose owner hands them out to credentialed users only.

    Raises:
        InputError: no such arm, nothing was made or scored, or pictures that may not leave.
    """
    with BenchRun.open(run) as opened:
        chosen = _chosen(opened, arms)
        _check_licences(opened, chosen, restricted)
        if unknown := sorted(set(models or {}) - {arm.label for arm in chosen}):
            raise InputError(f"--model-card {unknown[0]}: not one of the packed arms")
        packing = _Packing(opened, chosen)
        writer = BundleWriter(out)
        outputs = list(packing.outputs(writer))
        scores, replies = list(packing.scores()), list(packing.replies())
        if not scores:
            raise InputError(f"{run}: no scores yet; `plantain bench score {run}` makes them")
        writer.rows(OUTPUTS, outputs)
        writer.rows(SCORES, scores)
        writer.rows(REPLIES, replies)
        known = {arm.label for arm in chosen}
        writer.rows(PAIRS, (pair for pair in pairs if {pair.left, pair.right} <= known))
        writer.close(_header(opened, chosen, name or run.resolve().name, models or {}))
    made = sum(bool(row.file) for row in outputs)
    return Packed(out, len(chosen), made, len(outputs) - made, len(scores), len(replies))


def _chosen(run: BenchRun, labels: Collection[str]) -> list[Arm]:
    if unknown := sorted(set(labels) - set(run.arms)):
        raise InputError(f"--arm {unknown[0]}: no such arm in {run.run}; it has {', '.join(run.arms)}")
    arms = [
        arm
        for arm in run.arms.values()
        if (arm.label in labels if labels else arm.kind is not ArmKind.BASELINE)
    ]
    if not arms:
        raise InputError(f"{run.run}: it holds only baselines; name them with --arm to pack them anyway")
    return arms


def _check_licences(run: BenchRun, arms: Iterable[Arm], restricted: bool) -> None:
    held = [facts.id for facts in run.samples.values() if facts.licence == Licence.CREDENTIALED.value]
    if held and not restricted:
        raise InputError(
            f"{run.run}: {len(held)} samples are of credentialed sources (first {held[0]}), and edits show what their "
            "originals show; --restricted packs them for a holder who has the same permission"
        )
    closed = [f.id for f in run.samples.values() if f.licence not in (Licence.OPEN, Licence.ATTRIBUTION)]
    if closed and any(arm.kind is ArmKind.BASELINE for arm in arms):
        raise InputError(
            f"--arm: a baseline's pictures are the benchmark's own, and {len(closed)} samples (first {closed[0]}) are "
            "not under an open licence"
        )


def _header(run: BenchRun, arms: Sequence[Arm], name: str, models: Mapping[str, str]) -> BundleHeader:
    return BundleHeader(
        name=name,
        benchmark=run.header.name,
        edition=run.header.edition,
        digest=run.header.digest,
        seed=run.reader.header.seed,
        arms={arm.label: arm for arm in arms},
        samples=run.samples,
        models=dict(models),
        judges=tuple(orjson.loads(run.reader.meta(JUDGES) or "[]")),
        cards=tuple(as_json(card) for card in cards_of(run.run)),
        environment=environment(),
    )


def environment() -> dict[str, object]:
    """What numbers can depend on beside the outputs; nothing that names a machine or a person."""
    packages: dict[str, str] = {}
    for name in _TOLD:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "plantain": __version__,
        "python": platform.python_version(),
        "system": sys.platform,
        "machine": platform.machine(),
        "packages": packages,
    }


@dataclass(frozen=True, slots=True)
class _Packing:
    """Rows of the arms that are packed, in one order: arm, sample, output."""

    run: BenchRun
    arms: Sequence[Arm]

    def outputs(self, writer: BundleWriter) -> Iterator[OutputRow]:
        for arm in self.arms:
            for output in self.run.outputs(arm.label):
                row = OutputRow(arm=arm.label, sample=output.sample_id, k=output.k, reason=output.reason)
                if output.edited is None:
                    yield row
                    continue
                data = self.run.read(output)
                name = f"{PICTURES}/{arm.folder}/{output.sample_id}_{output.k}.png"
                writer.write(name, data if arm.kind is ArmKind.BASELINE else marked(data))
                yield row.model_copy(update={"file": name, "blob": output.edited})

    def scores(self) -> Iterator[ScoreRow]:
        for output in self._made():
            for metric, stored in sorted(rows_of(self.run.reader, output).items()):
                yield ScoreRow(
                    arm=output.arm,
                    sample=output.sample_id,
                    k=output.k,
                    metric=metric,
                    value=stored.score.value,
                    reason=stored.score.reason,
                    detail=dict(stored.detail),
                )

    def replies(self) -> Iterator[ReplyRow]:
        """Every draw of a judge that is behind a packed score."""
        for output in self._made():
            wanted = {
                draw for row in rows_of(self.run.reader, output).values() for draw in draws_of(row.detail)
            }
            for call in self.run.reader.calls(output.task_id, output.generation) if wanted else ():
                key, outcome = call.key, call.outcome
                judged = key.step is Step.JUDGE and key.round == output.k + 1 and key.draw in wanted
                if judged and call.final and outcome is not None:
                    yield ReplyRow(
                        arm=output.arm,
                        sample=output.sample_id,
                        k=output.k,
                        model=call.model,
                        draw=key.draw,
                        request=call.request_hash,
                        answer=call.answer if outcome.ok else "",
                        reason="" if outcome.ok else f"{outcome.kind.value}: {outcome.reason}".rstrip(": "),
                    )

    def _made(self) -> Iterator[Output]:
        for arm in self.arms:
            yield from (output for output in self.run.outputs(arm.label) if output.task_id)


def draws_of(detail: Mapping[str, object]) -> list[int]:
    """The numbers of the draws that a judged score says it is made of; none for a metric."""
    draws = detail.get("draws")
    rows = draws if isinstance(draws, list) else []
    return [one["draw"] for one in rows if isinstance(one, dict) and isinstance(one.get("draw"), int)]
