"""Keys are taken out of text however an echo wrote them, and nothing else is touched."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator

import orjson
import pytest

from files.echoes import KEYS, corpus, shows
from plantain.files import redaction
from plantain.files.redaction import HIDDEN, hide, is_dummy, redacted, redacted_json, redacted_line

AWKWARD = (
    *("x", "1", "/", "none", "EMPTY", "token"),
    *("not-needed", "data:image/", "iVBORw0KGgo", "passed", "YOUR_API_KEY"),
)


@pytest.fixture(autouse=True)
def only_these_keys() -> Iterator[None]:
    before = dict(redaction._keys)
    redaction._keys.clear()
    yield
    redaction._keys.clear()
    redaction._keys.update(before)


def test_every_echo_is_found_by_the_search_and_none_after_redaction() -> None:
    for key in KEYS:
        hide(key)
    left = []
    texts = list(corpus())
    for name, key, text in texts:
        assert shows(text, key), f"the test cannot see {name}"
        if shows(redacted(text), key) or shows(json.dumps(redacted_json([text])), key):
            left.append(name)
    assert len(texts) == 4 * 15 * 3
    assert left == []


def test_redacted_json_is_the_same_json_elsewhere() -> None:
    hide(KEYS[0])
    body = {"a": [1, 2.5, True, None, "words", {"b": f"Bearer {KEYS[0]}"}], KEYS[0]: 7, "c": "wörds\n"}
    assert redacted_json(body) == {
        "a": [1, 2.5, True, None, "words", {"b": f"Bearer {HIDDEN}"}],
        HIDDEN: 7,
        "c": "wörds\n",
    }
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


def test_a_word_that_a_key_begins_with_stays() -> None:
    hide("diagnosis-7f3a9c2e51b")
    said = "The diagnosis-7 of 2024 and the diagnosis-b of 2023 differ; a diagnosis needs a reader."
    assert redacted(said) == said


@pytest.mark.parametrize("key", AWKWARD)
def test_words_that_are_no_keys_harm_nothing(key: str) -> None:
    hide(key)
    picture = base64.b64encode(bytes(range(256)) * 40).decode()
    report = {"realism": {"evidence": f"the word {key} as such", "passed": True, "confidence": 0.5}, "n": 10}
    body = {"choices": [{"message": {"content": json.dumps(report)}}], "data": [{"b64_json": picture}]}
    assert is_dummy(key)
    assert redacted_json(body) is body
    line = orjson.dumps(body) + b"\n"
    assert redacted_line(line) is line


@pytest.mark.parametrize("key", [*KEYS, "0123456789abcdef0123", "qwkjhzxmvbnpqwkjhzxm", "token-abc123-9"])
def test_real_keys_are_no_dummies(key: str) -> None:
    assert not is_dummy(key)
