"""Answer files of jobs, read by key in whatever state they come."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import IO, cast

import orjson
import pytest

from plantain.files import secrets
from plantain.journal.batches import BatchLedger, JobRow
from plantain.models.hosted.answers import JsonObject, text
from plantain.models.hosted.batch.batcher import JobPoller
from plantain.models.hosted.batch.files import JobFiles, index
from plantain.models.hosted.batch.service import BatchJob, BatchService, JobState
from plantain.models.hosted.faults import Fault
from plantain.records import Outcome, OutcomeKind
from plantain.roles.options import BatchRules


def key_of(answer: JsonObject) -> str:
    return text(answer, "key")


def read(answer: JsonObject) -> JsonObject:
    if answer.get("said") == "!":
        raise Fault(Outcome(OutcomeKind.TRANSPORT, "an error"))
    return answer


@pytest.mark.parametrize(
    ("lines", "expected"), [("ab", "a"), ("!a", "a"), ("a!", "a"), ("!!ab", "a"), ("a!b", "a"), ("!", "!")]
)
def test_first_answer_counts_also_across_files_and_after_an_error(
    lines: str, expected: str, tmp_path: Path
) -> None:
    """An error is not billed, by both providers' texts on batches; an answer behind it is paid for."""
    for number, said in enumerate(lines):
        (tmp_path / f"{number}.jsonl").write_bytes(orjson.dumps({"key": "k", "said": said}) + b"\n")
    found, repeated = index(sorted(tmp_path.iterdir()), key_of, read)
    assert repeated == len(lines) - 1 - lines.index(expected)  # those behind the one that counts
    assert found["k"].read()["said"] == expected


def test_what_was_downloaded_has_no_name_until_keys_are_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-fake-0123456789abcdef-plantain"
    monkeypatch.setattr(secrets, "_keys", {})
    secrets.hide(key)
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
