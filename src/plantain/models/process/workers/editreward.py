"""EditReward (Wu et al. 2025, arXiv 2509.26346) as the judge `process/editreward`, with the rubric `editreward`.

It runs in the environment of EditReward's README (a GPU of 24 GB) and imports nothing of plantain. The package
index does not have EditReward: `folder` is a clone of TIGER-AI-Lab/EditReward. The reward has no unit, zero or
bounds: only the difference of two edits of one image has a meaning. Settings: config and checkpoint (paths, needed),
device ("cuda"), and untrained (true: random weights, a control of the rewards).
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

CONTRACT = 1


def load(settings: dict[str, Any]) -> Any:
    """Load EditReward with the settings of its README."""
    sys.path.insert(0, str(Path.cwd()))
    inferencer = importlib.import_module("EditReward").EditRewardInferencer(
        config_path=settings["config"],
        checkpoint_path=settings["checkpoint"],
        device=settings.get("device", "cuda"),
        reward_dim="overall_detail",
        rm_head_type="ranknet_multi_head",
    )
    if settings.get("untrained"):
        torch = importlib.import_module("torch")
        torch.manual_seed(0)
        for weight in inferencer.model.parameters():
            torch.nn.init.normal_(weight, std=0.02)
    return inferencer


def score(inferencer: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Score one edit; return the JSON answer with the criterion `reward` and a reason."""
    with importlib.import_module("torch").no_grad():
        rewards = inferencer.reward(
            prompts=[job["instruction"]], image_src=[job["original"]], image_paths=[job["edited"]]
        )
    value = float(rewards[0][0].item())
    return {"criteria": {"reward": value}, "reason": f"reward {value:.3f}"}


def main() -> None:
    """Process manifests until the standard input ends."""
    inferencer = None
    for line in sys.stdin:
        manifest = json.loads(Path(line.strip()).read_text(encoding="utf-8"))
        if manifest["contract"] != CONTRACT:
            raise SystemExit(f"contract {manifest['contract']} is unknown; this program knows {CONTRACT}")
        for job in manifest["jobs"]:
            if list(job["criteria"]) == ["reward"]:
                inferencer = inferencer or load(manifest["settings"])
                answer = score(inferencer, job)
            else:
                why = "EditReward gives one reward: use --rubric editreward"
                answer = {"outcome": "not_applicable", "reason": why}
            (Path(manifest["out"]) / f"{job['id']}.json").write_text(json.dumps(answer), encoding="utf-8")
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
