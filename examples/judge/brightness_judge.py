"""A judge of its own: passes whatever got brighter, by any rubric. It shows the contract and knows nothing of medicine."""

from plantain.pixels.decode import decode
from plantain.records import CriterionResult, InputError, Observations, RubricCriterion
from plantain.roles import JudgeRequest, Reply
from plantain.roles.options import ProviderOptions

MODELS = {"brightness/mean": ("judge",)}


class BrightnessJudge:
    name = "brightness/mean"
    fingerprint = "1"

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        gain = float(decode(request.edited.data).mean() - decode(request.original.data).mean())

        def result(criterion: RubricCriterion) -> CriterionResult:
            said = f"{gain:+.1f} grey levels"
            if criterion.scale is None:
                return CriterionResult(gain > 0, evidence=said)
            value = float(criterion.scale[gain > 0])
            return CriterionResult(request.rubric.passes(criterion.name, value), evidence=said, value=value)

        results = {criterion.name: result(criterion) for criterion in request.rubric.criteria}
        return Reply(
            Observations(results, dict.fromkeys(request.rubric.facts, gain > 0), reason="by brightness")
        )


def load(name: str, role: str, options: ProviderOptions) -> BrightnessJudge:
    if name not in MODELS or role != "judge":
        raise InputError(f"models.{role}: {name!r}: this package has the judge brightness/mean")
    return BrightnessJudge()
