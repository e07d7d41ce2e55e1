"""What the first edition asked hosted judges, and what it knew them by: a run of its own must go on asking the same.

Every hash here was printed by that edition's code (commit 6deffc8), before its rubrics became data.
"""

from __future__ import annotations

import asyncio
import hashlib

import orjson
import pytest

from fakes.requests import judge_request, source_image, write_request
from plantain.journal.payload import dumps, to_json
from plantain.models.hosted.asking import Heard, Question
from plantain.models.hosted.reports import report_schema
from plantain.models.hosted.writer_and_judge import HostedJudge, HostedWriter
from plantain.offline.judge import InstrumentJudge
from plantain.records import OK, Attempt, Criterion, CriterionResult, Direction, Observations, Rubric, Verdict
from plantain.roles import EncodedImage, JudgeRequest, fingerprint_of
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA, MEDEBENCH, decide


class Listener:
    """A language model that keeps what it is asked, and answers nothing of use, so that it is asked twice."""

    name = "fake/m"
    sampling = "temperature=0.2"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, question: Question) -> Heard:
        parts = [part if isinstance(part, str) else "picture" for part in question.parts]
        said = orjson.dumps([question.system, parts, question.seed, question.schema])
        self.asked.append(sha(said))
        return Heard("nothing")

    async def aclose(self) -> None: ...


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("rubric", "expected"),
    [
        (MED_BANANA, "81f8291484d2a320b89d2bde20be85b1f2a71abd7f7d7df595216a5accc93182"),
        (MEDEBENCH, "3311595e5f9e5e14ec4ad7714959d32a9b84059cfebfb2aa93790601013e2a29"),
    ],
)
def test_the_schemas_bytes_are_what_they_were(rubric: Rubric, expected: str) -> None:
    assert sha(orjson.dumps(report_schema(rubric))) == expected


AGAIN = "again@1:2682d65efb73"


@pytest.mark.parametrize("leniency", ["balanced", "strict"])
def test_the_fingerprints_are_what_they_were(leniency: str) -> None:
    judge = HostedJudge(Listener(), ProviderOptions(leniency=leniency, edition=1))
    assert fingerprint_of(judge, MED_BANANA) == judge.fingerprint
    assert judge.fingerprint == (
        "hosted@1 fake/m temperature=0.2 prompts=judge_add@1:659d93868dfc,judge_remove@1:07a31fe1842b,"
        f"{AGAIN} leniency={leniency} schema=81f8291484d2"
    )
    assert fingerprint_of(judge, MEDEBENCH) == (
        "scale@1 fake/m temperature=0.2 prompts=scale@1:e195f7294363,scale_system@1:29a126115c44,"
        f"{AGAIN} rubric=medebench@1 schema=3311595e5f9e"
    )
    assert fingerprint_of(InstrumentJudge(), MED_BANANA) == "1"
    assert fingerprint_of(InstrumentJudge(), MEDEBENCH) == "scale 1"


@pytest.mark.parametrize(
    ("leniency", "direction", "first", "again"),
    [
        ("balanced", Direction.ADD, "a0b4a63d9d47", "ca7eb93f27f2"),
        ("balanced", Direction.REMOVE, "df787eb688ed", "8c137b2fcf8c"),
        ("strict", Direction.ADD, "369fb696b5fc", "3f2e82ad2024"),
        ("strict", Direction.REMOVE, "034990b14695", "110458207e67"),
    ],
)
def test_med_bananas_questions_are_what_they_were(
    leniency: str, direction: Direction, first: str, again: str
) -> None:
    model = Listener()
    asyncio.run(
        HostedJudge(model, ProviderOptions(leniency=leniency, edition=1)).judge(judge_request(direction))
    )
    assert [asked[:12] for asked in model.asked] == [first, again]


@pytest.mark.parametrize(
    ("variant", "first", "again"),
    [("P", "c00e6d7dc22e", "ba0cb9db2844"), ("D", "0d250d0df259", "6e1ff8bfa6bc")],
)
def test_medebenchs_questions_are_what_they_were(variant: str, first: str, again: str) -> None:
    model = Listener()
    before, after, real = (EncodedImage(data, "image/png") for data in (b"a", b"b", b"c"))
    truth = real if variant == "P" else None
    image = source_image(modality="skin")
    asked = JudgeRequest(
        image, before, after, "Remove it.", None, Direction.CHANGE, MEDEBENCH, 7, truth, variant
    )
    asyncio.run(HostedJudge(model, ProviderOptions(edition=1)).judge(asked))
    assert [said[:12] for said in model.asked] == [first, again]


def test_the_score_of_nothing_is_the_integer_that_it_was() -> None:
    """It is hashed as part of a history: 0.0 in its place stops a run that goes on."""
    seen = Observations({name: CriterionResult(False) for name in Criterion})
    verdict = decide(seen, MED_BANANA, judge="j", policy="all-pass", threshold=0.7)
    assert b'"score":0,' in dumps(verdict)


def test_a_verdict_is_told_and_hashed_as_it_was() -> None:
    passed = dict(zip(Criterion, (False, True, True, True), strict=True))
    results = {
        name: CriterionResult(good, 0.5, () if good else ("too_subtle",), "é")
        for name, good in passed.items()
    }
    seen = Observations(results, {"has_disease": False, "other_disease": False}, None, "why")
    verdict = Verdict("j", seen, False, False, 0.6, False)
    assert sha(dumps(verdict)) == "b0b102c289ea5e1b049666c77dfd22b437d807107e7479c7b8b0560e1263d9de"
    answer = to_json(seen)
    assert sha(answer.encode()) == "e7324473ca25045674cdff480bcfe0a83ed840cb113e169e9b48718f7865f4a5"
    model = Listener()
    attempt = Attempt("t", 0, 1, "words", OK, "e" * 64, verdict=verdict, judge_outcome=OK)
    asyncio.run(HostedWriter(model, ProviderOptions(edition=1)).write(write_request((attempt,))))
    assert model.asked[0].startswith("065afae453c2")
