"""The judge of the provider `process`: another program that scores edits by the criteria of a rubric."""

from __future__ import annotations

from pathlib import Path

import orjson

from plantain.files.opening import read_inside
from plantain.files.secrets import redacted
from plantain.models.process.program import JOB, Program, command_digest, remark, run_job
from plantain.models.process.provider import WorkerCommand
from plantain.pixels.decode import one_line
from plantain.records import CriterionResult, Observations, Outcome, OutcomeKind, RubricCriterion, Usage
from plantain.roles import EncodedImage, JudgeRequest, Reply, failed

VERSION = "1"


class ProcessJudge:
    """A judge that runs as another program.

    Args:
        name: "process/NAME".
        command: how the program is started.
    """

    def __init__(self, name: str, command: WorkerCommand) -> None:
        self.name = name
        self._program = Program(name, command)
        self._served = f"{name}@{command_digest(command)}"
        self.fingerprint = f"process judge@{VERSION} {self._served} {sorted(command.settings.items())}"

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Return the program's observations, or a reply with the outcome that explains why there are none."""
        seen = await run_job(self._program, self._program.command.settings, request, _job, _observations)
        usage = Usage(served_model=self._served)
        if isinstance(seen, Outcome):
            return failed(seen, usage)
        values = {name: result.value for name, result in seen.criteria.items()}
        return Reply(
            seen, usage=usage, raw=orjson.dumps({"criteria": values, "reason": seen.reason}).decode()
        )

    async def aclose(self) -> None:
        """End the program; the next request starts it again."""
        await self._program.close()


def _job(folder: Path, request: JudgeRequest) -> dict[str, object]:
    return {
        "original": _written(folder / "in" / f"{JOB}-original", request.original),
        "edited": _written(folder / "in" / f"{JOB}-edited", request.edited),
        "instruction": request.instruction,
        "finding": request.finding.title if request.finding else "",
        "direction": request.direction.value,
        "criteria": {one.name: one.scale for one in request.rubric.criteria},
        "seed": request.seed,
    }


def _written(path: Path, image: EncodedImage) -> str:
    path = path.with_suffix(".png" if image.media_type == "image/png" else ".jpg")
    path.write_bytes(image.data)
    return str(path)


def _observations(folder: Path, request: JudgeRequest) -> Observations | Outcome:
    """Return the program's answer about one edit: every criterion of the rubric, or the outcome."""
    path = folder / "out" / f"{JOB}.json"
    if (outcome := remark(path)) is not None:
        return outcome
    if not path.is_file():
        return Outcome(OutcomeKind.MALFORMED, f"the program wrote no {path.name}")
    document = orjson.loads(read_inside(folder, path))
    values, reason = document.get("criteria"), one_line(redacted(str(document.get("reason") or "")))
    if not isinstance(values, dict):
        return Outcome(OutcomeKind.MALFORMED, f"the program's {path.name}: criteria: expected an object")
    results: dict[str, CriterionResult] = {}
    for criterion in request.rubric.criteria:
        value = values.get(criterion.name, "nothing")
        number_or_bool = type(value) in (int, float) if criterion.scale else isinstance(value, bool)
        if value is not None and not number_or_bool:
            wanted = "a number" if criterion.scale else "true or false"
            why = f"the program's {path.name}: criteria.{criterion.name}: expected {wanted} or null"
            return Outcome(OutcomeKind.MALFORMED, why)
        results[criterion.name] = _result(criterion, value, reason, request)
    return Observations(results, reason=reason)


def _result(
    criterion: RubricCriterion, value: float | bool | None, reason: str, request: JudgeRequest
) -> CriterionResult:
    if value is None:
        return CriterionResult(None, evidence=reason or "the program gave no value")
    if criterion.scale is None:
        return CriterionResult(bool(value), evidence=reason)
    least, most = criterion.scale
    if not least <= value <= most:
        return CriterionResult(None, evidence=f"{value:g} is outside the scale of {least} to {most}")
    return CriterionResult(request.rubric.passes(criterion.name, value), evidence=reason, value=float(value))
