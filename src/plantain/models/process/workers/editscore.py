"""EditScore (Luo et al. 2025, arXiv 2509.23909) as the judge `process/editscore`, with the rubric `editscore`.

It runs in an environment of its own (`editscore.requirements.txt` in this folder) and imports nothing of plantain. Each
score is from 0 to 10. EditScore replaces an answer that it cannot read by a random number; such a score is left out.
Settings: backbone ("qwen25vl"), model ("Qwen/Qwen2.5-VL-7B-Instruct"), lora ("EditScore/EditScore-7B"), and untrained
(true: random weights, a control of the scores).
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

CONTRACT = 1
SCORES = {"prompt_following": "SC", "consistency": "SC", "perceptual_quality": "PQ"}
"""Scores of EditScore -> the answer of its model that they are read from."""
GUESSED = "guess_if_cannot_parse"
"""In the reasoning of a random score."""


def load(settings: dict[str, Any]) -> Any:
    """Load EditScore, with one pass per edit, because it only reports the last pass's reasoning."""
    scorer = importlib.import_module("editscore").EditScore(
        backbone=settings.get("backbone", "qwen25vl"),
        model_name_or_path=settings.get("model", "Qwen/Qwen2.5-VL-7B-Instruct"),
        lora_path=settings.get("lora", "EditScore/EditScore-7B"),
        score_range=25,
        num_pass=1,
    )
    if settings.get("untrained"):
        torch = importlib.import_module("torch")
        torch.manual_seed(0)
        for weight in scorer.model.model.parameters():
            torch.nn.init.normal_(weight, std=0.02)
    return scorer


def score(scorer: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Score one edit; return the JSON answer with its criteria, None where the model's text is unreadable."""
    images: Any = importlib.import_module("PIL.Image")
    with images.open(job["original"]) as before, images.open(job["edited"]) as after:
        pair = [before.convert("RGB"), after.convert("RGB")]
    scorer.seed = job["seed"] % 2**31
    found = scorer.evaluate(pair, job["instruction"])
    answers = {part: str(found[f"{part}_reasoning"]) for part in ("SC", "PQ")}
    guessed = {part for part, text in answers.items() if GUESSED in text}
    values = {name: None if SCORES[name] in guessed else float(found[name]) for name in job["criteria"]}
    if guessed:
        return {"criteria": values, "reason": "the model's answer could not be read"}
    return {
        "criteria": values,
        "reason": f"overall {found['overall']:.2f} of 10; {answers['SC']}; {answers['PQ']}",
    }


def main() -> None:
    """Process manifests until the standard input ends."""
    scorer = None
    for line in sys.stdin:
        manifest = json.loads(Path(line.strip()).read_text(encoding="utf-8"))
        if manifest["contract"] != CONTRACT:
            raise SystemExit(f"contract {manifest['contract']} is unknown; this program knows {CONTRACT}")
        for job in manifest["jobs"]:
            if set(job["criteria"]) <= SCORES.keys():
                scorer = scorer or load(manifest["settings"])
                answer = score(scorer, job)
            else:
                why = f"EditScore scores {', '.join(SCORES)}: use --rubric editscore"
                answer = {"outcome": "not_applicable", "reason": why}
            (Path(manifest["out"]) / f"{job['id']}.json").write_text(json.dumps(answer), encoding="utf-8")
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
