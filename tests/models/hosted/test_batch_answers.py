"""Answer files of jobs, read by key in whatever state they come."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import IO, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plantain.files import redaction
from plantain.journal.batches import BatchLedger, JobRow
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.batch.files import JobFiles, index
from plantain.models.hosted.batch.poller import JobPoller
from plantain.models.hosted.batch.service import BatchJob, BatchService, JobState
from plantain.models.hosted.bodies import text
from plantain.models.hosted.faults import Fault
from plantain.records import Outcome, OutcomeKind
from plantain.roles.batch_rules import BatchRules


def key_of(answer: JsonObject) -> str:
    return text(answer, "key")


def read(answer: JsonObject) -> JsonObject:
    if answer.get("said") == "!":
        raise Fault(Outcome(OutcomeKind.TRANSPORT, "an error"))
    return answer


NOISE = st.sampled_from([b"", b"   ", b"[1, 2]", b'{"key": ', b"\xff\xfe", b'{"other": 1}', b'{"key": 3}'])


@given(
    answers=st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20), max_size=8),
    noise=st.lists(NOISE, max_size=6),
    order=st.randoms(use_true_random=False),
    ends=st.booleans(),
)
def test_every_whole_line_is_found_by_its_key_among_any_noise(
    tmp_path_factory: pytest.TempPathFactory,
    answers: dict[str, str],
    noise: list[bytes],
    order: object,
    ends: bool,
) -> None:
    lines = [json.dumps({"key": key, "said": said}).encode() for key, said in answers.items()] + noise
    order.shuffle(lines)  # type: ignore[attr-defined]
    path = tmp_path_factory.mktemp("answers") / "a.jsonl"
    path.write_bytes(b"\n".join(lines) + (b"\n" if ends else b""))
    found = index([path], key_of, read)
    assert {key: line.read()["said"] for key, line in found.items()} == answers


@pytest.mark.parametrize(
    ("lines", "expected"), [("ab", "a"), ("!a", "a"), ("a!", "a"), ("!!ab", "a"), ("a!b", "a"), ("!", "!")]
)
def test_first_answer_counts_also_across_files_and_after_an_error(
    lines: str, expected: str, tmp_path: Path
) -> None:
    """An error is not billed, by both providers' texts on batches; an answer behind it is paid for."""
    for number, said in enumerate(lines):
        (tmp_path / f"{number}.jsonl").write_bytes(orjson.dumps({"key": "k", "said": said}) + b"\n")
    found = index(sorted(tmp_path.iterdir()), key_of, read)
    assert found["k"].read()["said"] == expected


@pytest.mark.parametrize(
    ("state", "kind", "fatal", "billed"),
    [
        (JobState.DONE, OutcomeKind.TRANSPORT, False, True),
        (JobState.UNKNOWN, OutcomeKind.TRANSPORT, False, True),
        (JobState.FAILED, OutcomeKind.TRANSPORT, False, False),
        (JobState.EXPIRED, OutcomeKind.RATE_LIMITED, False, False),
        (JobState.CANCELLED, OutcomeKind.TRANSPORT, True, False),
    ],
)
def test_unanswered_request_ends_by_the_state_of_its_job(
    state: JobState, kind: OutcomeKind, fatal: bool, billed: bool
) -> None:
    fault = BatchJob("batches/b1", state).unanswered()
    assert (fault.outcome.kind, fault.outcome.fatal) == (kind, fatal)
    assert "batches/b1" in fault.outcome.reason
    assert (fault.usage is None) == billed  # None: nobody knows what was billed, so that money stays held


def test_what_was_downloaded_has_no_name_until_keys_are_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-fake-0123456789abcdef-plantain"
    monkeypatch.setattr(redaction, "_keys", {})
    redaction.hide(key)
    seen: list[list[str]] = []

    class Service:
        async def fetch(self, file_id: str, to: IO[bytes]) -> None:
            to.write(f'{{"key": "1", "said": "{key}"}}\nwhole\n'.encode())
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
    assert files.answer("job", 0).read_text() == '{"key":"1","said":"[key]"}\nwhole\n'
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["job.answers-0.jsonl"]
