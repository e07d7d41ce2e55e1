from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import IO, Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.content import CRITERIA, report
from plantain.files import secrets
from plantain.journal.batches import BatchLedger, JobRow
from plantain.models.hosted.answers import JsonObject, Unreadable, read_instruction, text
from plantain.models.hosted.batch.batcher import JobPoller
from plantain.models.hosted.batch.files import JobFiles, index
from plantain.models.hosted.batch.service import BatchJob, BatchService, JobState
from plantain.models.hosted.faults import Fault
from plantain.models.hosted.openai import chat, responses
from plantain.models.hosted.reports import read_report
from plantain.records import Criterion, FailureCode, Outcome, OutcomeKind
from plantain.roles.options import BatchRules
from plantain.rubrics import MED_BANANA


def a_report(**changes: Any) -> dict[str, Any]:
    return {**report("x"), **changes}


def test_a_report_in_the_requested_form_is_read_in_full() -> None:
    given_report = a_report(
        realism={"evidence": "a seam", "codes": ["hard_edge"], "passed": False, "confidence": 0.9},
        has_disease=True,
        qualified=False,
        reason="seam",
    )
    seen = read_report(json.dumps(given_report), MED_BANANA)
    assert set(seen.criteria) == set(Criterion)
    realism = seen.criteria[Criterion.REALISM]
    assert (realism.passed, realism.confidence, realism.codes) == (False, 0.9, (FailureCode.HARD_EDGE,))
    expected = (True, False, False, "seam")
    assert (seen.facts["has_disease"], seen.facts["other_disease"], seen.opinion, seen.reason) == expected


@pytest.mark.parametrize(
    "wrap", ["```json\n{}\n```", "Here you are:\n{}\nDone {{}}.", '{{"report": {}}}', "[{}]"]
)
def test_report_is_found_in_its_wrapping(wrap: str) -> None:
    report = json.dumps(a_report())
    text = wrap.replace("{}", report).replace("{{", "{").replace("}}", "}")
    assert read_report(text, MED_BANANA) == read_report(report, MED_BANANA)
    assert read_report(json.dumps(text), MED_BANANA) == read_report(report, MED_BANANA)


def test_markup_quoted_in_a_report_is_kept() -> None:
    no = "{'has_disease': False, 'other_disease': False}"
    struck = json.dumps(a_report(reason="an <s>old</s> marker"))  # strike-through in HTML
    for reply in (struck, f"It is old. <|endoftext|>\n{struck}", f"Old.</s>\n```json\n{struck}\n```"):
        assert read_report(reply, MED_BANANA).reason == "an old marker"
    for quoted in (f"It shows </think>{no}", f"It shows [/INST] {no}", f'It shows "yes" {no}'):
        with pytest.raises(Unreadable):
            read_report(json.dumps(a_report(reason="QUOTED")).replace("QUOTED", quoted), MED_BANANA)


@pytest.mark.parametrize("value", [None, 1, "yes", []])
def test_nothing_else_is_taken_for_a_decision(value: object) -> None:
    with pytest.raises(Unreadable, match="has_disease"):
        read_report(json.dumps(a_report(has_disease=value)), MED_BANANA)


def test_two_different_reports_are_unreadable() -> None:
    text = json.dumps(a_report()) + json.dumps(a_report(has_disease=not a_report()["has_disease"]))
    with pytest.raises(Unreadable, match="2 different reports"):
        read_report(text, MED_BANANA)


def test_a_key_with_two_different_values_is_unreadable() -> None:
    text = json.dumps(a_report())[:-1] + ', "other_disease": true}'
    with pytest.raises(Unreadable, match="answered twice"):
        read_report(text, MED_BANANA)


@pytest.mark.parametrize("text", ["", "fine", "{}", '{"a":' * 5000])
def test_other_text_is_an_unreadable_report(text: str) -> None:
    with pytest.raises(Unreadable):
        read_report(text, MED_BANANA)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*CRITERIA, "has_disease", "other_disease", "reason", "qualified"]), JSON)
)
def test_any_change_gives_a_report_with_the_same_decisions_or_none(changes: dict[str, Any]) -> None:
    """No value outside true and false ever becomes a decision."""
    report = a_report(**changes)
    try:
        seen = read_report(json.dumps(report), MED_BANANA)
    except Unreadable:
        return
    for name in ("has_disease", "other_disease"):
        assert str(report[name]).strip().casefold() == str(seen.facts[name]).casefold()
    for criterion, result in seen.criteria.items():
        assert str(report[criterion]["passed"]).strip().casefold() == str(result.passed).casefold()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Add air.", "Add air."),
        ("“Add air.”", "Add air."),
        ("<think>what {now}</think>Add air.", "Add air."),
        # DeepSeek-R1's chat template opens the block, so that only its end is in the reply
        ("Okay, some air.\n</think>\n\nAdd air.", "Add air."),
        ("[THINK]Some air.[/THINK]Add air.", "Add air."),  # Magistral
        ("◁think▷Some air.◁/think▷Add air.", "Add air."),  # Kimi-VL
        ("<unused94>thought\nSome air.<unused95>Add air.", "Add air."),  # MedGemma 1.5
        ("- Add air.", "Add air."),
        ("1. Add air.", "Add air."),
        ("**Edit:** Add air.", "Add air."),
        ("<think>Some air.</think><answer>Add air.</answer>", "Add air."),  # the R1 paper's template
        # OpenAI's harmony format: channels analysis, commentary and final
        (
            "<|channel|>analysis<|message|>Some air.<|end|><|start|>assistant<|channel|>final<|message|>Add air.",
            "Add air.",
        ),
        ('<|channel|>final <|constrain|>json<|message|>{"instruction": "Add air."}', "Add air."),
        ("<|begin_of_box|>Add air.<|end_of_box|>", "Add air."),  # GLM-4.1V
        ("So: $\\boxed{Add air.}$", "Add air."),  # Qwen's prompts for reasoning
        ("Add air.<|im_end|>", "Add air."),
        ("Add air.<|im_end|>\n<|im_start|>user\nMore.<|im_end|>\n<|im_start|>assistant\nYes.", "Add air."),
        ("[INST] Write it. [/INST] Add air.</s>[INST] More.", "Add air."),  # a model that continues, vLLM
        ("Write it.<|im_end|>\n<|im_start|>assistant\nAdd air.<|im_end|>", "Add air."),  # echoes
        ("Write it.</s>\n<|assistant|>\nAdd air.</s>", "Add air."),
        ("Write it.<end_of_turn>\n<start_of_turn>model\nAdd air.<end_of_turn>", "Add air."),
        ("<s>[INST] Write it. [/INST] Add <s>thick</s> air.</s><s>[INST] More.</s>", "Add thick air."),
        ("Here is the instruction:\n\nAdd air.", "Add air."),
        ("Sure! Here's a refined edit instruction:\n```text\nAdd air.\n```\nGood luck.", "Add air."),
        ("### Edit Instruction\n**Add air.**", "Add air."),
        ('```json\n{"instruction": "Add air.", "reason": "It is missing."}\n```', "Add air."),
        ('[{"text": "Add \\"free\\" air."}]', 'Add "free" air.'),
        ("Add air: a thin line.", "Add air: a thin line."),
        ("Add air {in the left apex}.", "Add air {in the left apex}."),
        ("<|channel>thought\nSome air.<channel|>Add air.", "Add air."),  # Gemma 4
        ("analysisSome air.assistantfinalAdd air.", "Add air."),  # gpt-oss, its tokens removed by a server
        ("<|begin_of_thought|>Some air.<|end_of_thought|>Add air.", "Add air."),  # Sky-T1
        ("<|start_header_id|>assistant<|end_header_id|>\n\nAdd air.<|eot_id|>", "Add air."),  # Llama 3
        ("<start_of_turn>model\nAdd air.<end_of_turn>", "Add air."),  # Gemma
        ("<response><instruction>Add air.</instruction></response>", "Add air."),
        ("Sure. The following is the instruction:\n\n> Add air.", "Add air."),
        ("Assistant: *Add air.*\n\n---\n\nLet me know if you need another one.", "Add air."),
        ('Some air is missing. {"instruction": "Add air."}', "Add air."),
        ('{"result": {"instruction": "Add air."}}', "Add air."),
        ('{"instruction": "Add \\ud83d air."}', "Add ? air."),  # half of a pair, which UTF-8 does not have
        ("[INST] Write it. [/INST] Add air.", "Add air."),  # Mistral's template, echoed
        ("USER: Write it.\nASSISTANT: Add air.", "Add air."),  # Vicuna's
        ('```json\n```json\n{"instruction": "Add air."}\n```\n```', "Add air."),
        ("The apex is dark.\n\n**Instruction:** Add air.\n**Reasoning:** None is there.", "Add air."),
        ("Sure! Add air. Let me know if you want more.", "Add air."),
        ("## Analysis\nNo air.\n\n## Edit Instruction\nAdd air.", "Add air."),
        *((f"{text}Add air.", "Add air.") for text in ("Draft: Dim.\n\nFinal: ", "Round 2 instruction: ")),
        ("**Round 1:** Dim.\n**Revised:** Add air.", "Add air."),
        ("Revised: Add air.", "Add air."),
        ("Add a round spot: 5 mm.\n\nFinal: keep it.", "Add a round spot: 5 mm.\n\nFinal: keep it."),
        ("**Instruction:** Add air.\n**Final:** 2 mm.", "Add air.\n**Final:** 2 mm."),
        *(
            (f"Add air.{text}", "Add air.")
            for text in (" (2 words)", "\nNegative prompt: text", "\nConfidence: 1")
        ),
        ('<instruction lang="en">Add air.</instruction>', "Add air."),
        ("Add air. If you have to, darken it.", "Add air. If you have to, darken it."),  # to the editor
    ],
)
def test_instruction_without_its_wrapping(text: str, expected: str) -> None:
    assert read_instruction(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<think>Add air, or",
        "<|channel|>analysis<|message|>Add air, or<|end|>",
        '{"a": "Add air.", "b": "Remove air."}',
        '{"passed": true}',
        "{'instruction': 'Add air.'}",
        '{"instruction": "Add air."} {"instruction": "Remove air."}',
        "### Plan\nAdd air.\n### Notes\nNone.",
        *("Option 1: Add air.\n\n**Option 2:** Remove air.", "Add air.\n\nOR\n\nRemove air."),
        "I'm sorry, but I can't help with that.",
        "x" * 5000,
    ],
)
def test_no_instruction_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_instruction(text)


@pytest.mark.parametrize(
    "reason",  # of SGLang, OpenRouter, a gateway to Gemini, Z.ai, DeepSeek and Mistral
    [
        *("abort", "error", "MAX_TOKENS", "sensitive", "network_error", "model_context_window_exceeded"),
        *("insufficient_system_resource", "model_length"),
    ],
)
def test_a_truncated_answer_is_rejected(reason: str) -> None:
    failed = {"finish_reason": "stop", "error": {"code": 502}, "message": {"content": "Add"}}  # OpenRouter
    with pytest.raises(Fault, match="ended with stop"):
        chat.read_text({"choices": [failed]})
    with pytest.raises(Fault):
        chat.read_text({"choices": [{"finish_reason": reason, "message": {"content": "Add"}}]})


def test_commentary_and_reasoning_are_left_out() -> None:
    parts = [{"type": "reasoning", "text": "Air?"}, {"type": "text", "text": "Add air."}]
    assert chat.read_text({"choices": [{"message": {"content": parts}}]}) == "Add air."
    phases = [("commentary", "I look."), ("final_answer", "Add air.")]
    messages = [
        {"type": "message", "phase": phase, "content": [{"type": "output_text", "text": text}]}
        for phase, text in phases
    ]
    assert responses.read_text({"status": "completed", "output": messages}) == "Add air."


def key_of(answer: JsonObject) -> str:
    return text(answer, "key")


def read(answer: JsonObject) -> JsonObject:
    if answer.get("text") == "!":
        raise Fault(Outcome(OutcomeKind.TRANSPORT, "an error"))
    return answer


@pytest.mark.parametrize(
    ("lines", "expected"), [("ab", "a"), ("!a", "a"), ("a!", "a"), ("!!ab", "a"), ("a!b", "a"), ("!", "!")]
)
def test_first_answer_counts_also_across_files_and_after_an_error(
    lines: str, expected: str, tmp_path: Path
) -> None:
    """An error is not billed, by both providers' texts on batches; an answer behind it is paid for."""
    for number, line in enumerate(lines):
        (tmp_path / f"{number}.jsonl").write_bytes(orjson.dumps({"key": "k", "text": line}) + b"\n")
    found, repeated = index(sorted(tmp_path.iterdir()), key_of, read)
    assert repeated == len(lines) - 1 - lines.index(expected)  # those behind the one that counts
    assert found["k"].read()["text"] == expected


def test_a_downloaded_file_gets_its_name_after_keys_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-fake-0123456789abcdef-plantain"
    monkeypatch.setattr(secrets, "_keys", {})
    secrets.hide(key)
    seen: list[list[str]] = []

    class Service:
        async def fetch(self, file_id: str, to: IO[bytes]) -> None:
            to.write(f'{{"key": "1", "text": "{key}"}}\nwhole\n'.encode())
            seen.append([path.name for path in (tmp_path / "jobs").iterdir()])
            if len(seen) == 1:
                raise Fault(Outcome(OutcomeKind.TRANSPORT, "cut"))

    class Ledger:
        async def note(self, key: str, trouble: str) -> None: ...

    files, rules = JobFiles(tmp_path / "jobs"), BatchRules(poll_s=0.001)
    poller = JobPoller(cast(BatchService, Service()), cast(BatchLedger, Ledger()), files, rules)
    job = JobRow("job", "a/model", "/v1", "running", "id")
    asyncio.run(poller._fetch(job, BatchJob("id", JobState.DONE, answers=("file",))))
    assert seen == [[], []]
    assert files.answer("job", 0).read_text() == '{"key":"1","text":"[key]"}\nwhole\n'
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["job.answers-0.jsonl"]
