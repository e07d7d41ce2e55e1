"""What a comparison of two wordings will ask and cost, before anything is asked."""

from __future__ import annotations

from pathlib import Path

from plantain.audit.jury import models_of
from plantain.audit.rejudging.rejudge import check_rejudgeable
from plantain.audit.rejudging.stored import stored_attempts
from plantain.audit.rejudging.wordings import Wording, juries_of, without_prompts
from plantain.journal import JournalReader, JsonValue
from plantain.journal.questions.telemetry import costs
from plantain.records import Step
from plantain.rubrics import recorded
from plantain.runs.door import Door
from plantain.runs.limits import ON_THIS_MACHINE, SPREAD, TYPICAL_USAGE, unpriced, usual_cost
from plantain.runs.settings.terms import Terms


def plan_comparison(
    on: Path, first: Wording, second: Wording, *, judge: str, terms: Terms, sample: int | None
) -> dict[str, JsonValue]:
    """Calls, tokens and dollars that a comparison takes at the most, by the run's own bills where it has any.

    Raises:
        InputError: as `compare_prompts`, but for missing keys, which are remarked upon.
    """
    keys: list[str] = []
    with JournalReader.open(on) as reader:
        check_rejudgeable(reader)
        juries_of(Door(without_prompts(terms)), judge, recorded(reader.header.frozen), (first, second), keys)
        attempts = sum(1 for _ in stored_attempts(reader, sample, reader.header.seed))
        billed = {(r.step, r.model): r.cost_usd / r.priced for r in costs(reader) if r.cost_usd and r.priced}
    rows: list[JsonValue] = []
    low = expected = high = 0.0
    without: list[JsonValue] = []
    for model in models_of(judge):
        blind = terms.options(model, "judge").get("form") == "blind"
        for step in (Step.LOOK, Step.JUDGE) if blind else (Step.JUDGE,):
            calls, usage = 2 * attempts, TYPICAL_USAGE[step]
            each = billed.get((step.value, model))
            row: dict[str, JsonValue] = {"step": step.value, "model": model, "calls": calls}
            if model.partition("/")[0] not in ON_THIS_MACHINE:
                row["tokens_per_call"] = {"read": usage.input_tokens, "written": usage.output_tokens}
            rows.append(row)
            usual = usual_cost(terms, model, "judge", usage)
            if usual is None:
                missing = unpriced(terms, model, "judge")
                without += [] if missing in without else [missing]
            elif each is not None:
                low, expected, high = (total + calls * each for total in (low, expected, high))
            else:
                low, expected, high = (
                    total + share * calls * usual
                    for total, share in zip((low, expected, high), SPREAD, strict=True)
                )
    cost: JsonValue = None if without else {"low": low, "expected": expected, "high": high}
    remarks: list[JsonValue] = [f"{line}; the comparison needs it" for line in dict.fromkeys(keys)]
    return {
        "attempts": attempts,
        "calls_by": rows,
        "cost_usd": cost,
        "unpriced_models": without,
        "remarks": remarks,
    }
