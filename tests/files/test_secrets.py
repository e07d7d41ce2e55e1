"""Keys are sent only to their own provider."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import typer

from fakes.caller import options_of
from files.echoes import KEYS
from plantain.files import secrets
from plantain.files.secrets import (
    HIDDEN,
    environment_without_keys,
    hide,
    hide_environment,
    is_dummy,
    key_from_environment,
    redact_terminal,
    redacted,
    redacted_json,
    redacted_line,
)
from plantain.models.process.program import Program
from plantain.models.process.provider import WorkerCommand
from plantain.records import InputError
from plantain.roles.options import stays_on_premises

KEY = "sk-live-4f9a8b7c6d5e-plantain"


def test_a_placeholder_key_is_accepted_only_on_the_premises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "EMPTY")
    assert key_from_environment(("SOME_API_KEY",), "some", near=True).reveal() == "EMPTY"
    with pytest.raises(InputError, match="some: SOME_API_KEY holds a placeholder"):
        key_from_environment(("SOME_API_KEY",), "some")


@pytest.mark.parametrize(
    ("address", "on_premises", "near"),
    [
        ("http://127.0.0.1:8000/v1", False, True),
        ("http://localhost/v1", False, True),
        ("https://gpu.hospital.example/v1", True, True),
        ("https://gpu.hospital.example/v1", False, False),
        ("http://localhost.evil.example/v1", False, False),
        ("", False, False),
    ],
)
def test_near_is_this_machine_or_declared(address: str, on_premises: bool, near: bool) -> None:
    assert (
        stays_on_premises(options_of("openai-compatible", base_url=address, on_premises=on_premises)) is near
    )


def test_other_programs_get_only_the_named_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("GEMINI_API_KEY", KEY),
        ("HF_TOKEN", "hf_0123456789abcdefABCDEF"),
        ("MY_VAULT", KEY),
        ("AWS_BEARER_TOKEN_BEDROCK", "ABSKexample0123456789abcdef"),
        ("OPENAI_API_KEY_OF_THE_LAB", "sk-lab-0123456789abcdefXYZ"),
        ("MODE", "fast"),
        ("HTTPS_PROXY", f"http://me:{KEY}@proxy:3128"),  # a worker's command reaches no server without it
    ):
        monkeypatch.setenv(name, value)
    hide(KEY)
    given = environment_without_keys(["HF_TOKEN"])
    assert "GEMINI_API_KEY" not in given
    assert not given.keys() & {"MY_VAULT", "AWS_BEARER_TOKEN_BEDROCK", "OPENAI_API_KEY_OF_THE_LAB"}
    assert given["HF_TOKEN"] == "hf_0123456789abcdefABCDEF"
    assert given["MODE"] == "fast" and KEY in given["HTTPS_PROXY"]
    assert given["PATH"] == os.environ["PATH"]


def test_the_path_of_a_file_with_credentials_is_not_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "a-study-of-many-months" / "leaderboard.html"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "a-study-of-many-months.json"))
    monkeypatch.setenv("SOME_SECRET", "/x7Kq/3vTt0Zp9LmWq2RbYc")  # base64 may begin like a path
    hide_environment()
    assert redacted(f"look at {page}") == f"look at {page}"
    assert redacted("it is /x7Kq/3vTt0Zp9LmWq2RbYc") == "it is [key]"


def test_a_program_gets_no_key_and_its_last_output_contains_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    hide(KEY)
    code = (
        "import os, sys; sys.stdin.readline()\n"
        "sys.stderr.write('seen: ' + os.environ.get('OPENAI_API_KEY', 'none') + ' last: ' + sys.argv[1] + '\\n')\n"
        "sys.exit(3)"
    )
    program = Program("process/talker", WorkerCommand(command=(sys.executable, "-c", code, KEY)))
    outcome = asyncio.run(program.run(tmp_path / "manifest.json"))
    assert outcome is not None
    assert outcome.reason.endswith(f"seen: none last: {HIDDEN}")


def test_the_terminal_shows_no_key_even_in_a_traceback_with_locals() -> None:
    import subprocess

    code = (
        "import sys, traceback\n"
        "from plantain.files.secrets import redact_terminal\n"
        "redact_terminal()\n"
        "import os\n"
        "def f():\n"
        "    key = os.environ['OPENAI_API_KEY']; print('key is', key)\n"
        "    print(key, file=sys.stderr)\n"
        "    try:\n"
        "        raise RuntimeError(f'no {key}')\n"
        "    except RuntimeError as error:\n"
        "        trace = traceback.TracebackException.from_exception(error, capture_locals=True)\n"
        "        print(*trace.format(), file=sys.stderr); raise\n"
        "f()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENAI_API_KEY": KEY},
        check=False,
    )
    assert done.returncode == 1
    assert HIDDEN in done.stdout
    assert done.stderr.count(HIDDEN) >= 4
    assert KEY not in done.stdout + done.stderr
    assert "4f9a8b7c6d5e" not in done.stdout + done.stderr


STRANGE = "a\x1b[2Jb\x9b31mc\x07\u202ed\r\ud800"


def test_every_printer_escapes_terminal_commands_in_foreign_text(capsys: pytest.CaptureFixture[str]) -> None:
    """ECMA-48 5.2 and 5.3: C0 and C1 controls, ESC and CSI among them, are commands to a terminal."""
    from rich.table import Table
    from rich.text import Text

    from plantain.cli.terminal.tables import TerminalConsole, print_table

    redact_terminal()
    print(STRANGE)
    print(STRANGE, file=sys.stderr)
    typer.echo(STRANGE)
    table = Table(STRANGE)
    table.add_row(Text(STRANGE))
    print_table(table)
    TerminalConsole(stderr=True).print(STRANGE, markup=False)
    out, err = capsys.readouterr()
    for text in (out, err):
        assert not set(text) & {"\x1b", "\x9b", "\x07", "\u202e", "\r", "\ud800"}
        assert "\\x1b[2J" in text
    print(orjson.dumps({"name": "b\x9b\x1b"}).decode())
    assert json.loads(capsys.readouterr().out) == {"name": "b\x9b\x1b"}


AWKWARD = (
    *("x", "1", "/", "none", "EMPTY", "token"),
    *("not-needed", "data:image/", "iVBORw0KGgo", "passed", "YOUR_API_KEY"),
)


@pytest.fixture(autouse=True)
def only_these_keys() -> Iterator[None]:
    before = dict(secrets._keys)
    secrets._keys.clear()
    yield
    secrets._keys.clear()
    secrets._keys.update(before)


def test_redaction_changes_json_only_at_the_key() -> None:
    hide(KEYS[0])
    body = {"a": [1, 2.5, True, None, "words", {"b": f"Bearer {KEYS[0]}"}], KEYS[0]: 7, "c": "wörds\n"}
    expected = {"a": [1, 2.5, True, None, "words", {"b": f"Bearer {HIDDEN}"}], HIDDEN: 7, "c": "wörds\n"}
    assert redacted_json(body) == expected
    assert orjson.loads(redacted(json.dumps(body))) == redacted_json(body)


def test_a_key_in_pieces_over_neighbouring_strings_is_found() -> None:
    key = KEYS[1]
    hide(key)
    for cuts in ((8,), (20,), (31,), (8, 16, 24), (10, 30)):
        ends = (0, *cuts, len(key))
        pieces = [key[a:b] for a, b in itertools.pairwise(ends)]
        body = {"choices": [{"delta": {"content": piece, "index": n}} for n, piece in enumerate(pieces)]}
        clean = redacted_json(body)
        assert isinstance(clean, dict)
        assert not any(piece in json.dumps(clean) for piece in pieces), cuts
        assert [choice["delta"]["index"] for choice in clean["choices"]] == list(range(len(pieces)))


def test_a_word_that_starts_a_key_is_kept() -> None:
    hide("diagnosis-7f3a9c2e51b")
    text = "The diagnosis-7 of 2024 and the diagnosis-b of 2023 differ; a diagnosis needs a reader."
    assert redacted(text) == text


@pytest.mark.parametrize("key", AWKWARD)
def test_keys_that_are_common_words_redact_nothing(key: str) -> None:
    hide(key)
    data = base64.b64encode(bytes(range(256)) * 40).decode()
    report = {"realism": {"evidence": f"the word {key} as such", "passed": True, "confidence": 0.5}, "n": 10}
    body = {"choices": [{"message": {"content": json.dumps(report)}}], "data": [{"b64_json": data}]}
    assert is_dummy(key)
    assert redacted_json(body) is body
    line = orjson.dumps(body) + b"\n"
    assert redacted_line(line) is line


@pytest.mark.parametrize("key", [*KEYS, "0123456789abcdef0123", "qwkjhzxmvbnpqwkjhzxm", "token-abc123-9"])
def test_real_keys_are_not_dummies(key: str) -> None:
    assert not is_dummy(key)
