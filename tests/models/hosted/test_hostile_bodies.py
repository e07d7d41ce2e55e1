"""Bodies, answers and addresses that are made to break a reader: each is one outcome or one line."""

from __future__ import annotations

import orjson
import pytest

from plantain.models.hosted.answers import Unreadable, read_object, scrub
from plantain.models.hosted.faults import Fault, read_body
from plantain.models.hosted.gemini.models import read_usage
from plantain.roles.options import checked_url

DEEP = "[" * 100_000 + "]" * 100_000
BODIES = {
    "nested lists": f'{{"a": {DEEP}}}',
    "a long number": '{"a": ' + "9" * 5000 + "}",
    "no object": "[1]",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_body_is_one_fault(name: str) -> None:
    with pytest.raises(Fault) as fault:
        read_body(BODIES[name].encode())
    assert len(fault.value.outcome.reason) < 200


@pytest.mark.parametrize("tokens", [2**63, 1e308])
def test_a_count_beyond_all_that_can_be_is_none_and_the_body_can_be_kept(tokens: object) -> None:
    """A run ended in a traceback behind a paid answer, or held $46,000,000,000,000 for spent."""
    body = {
        "usageMetadata": {"promptTokenCount": tokens, "candidatesTokenCount": 20, "totalTokenCount": tokens}
    }
    assert read_usage(body).input_tokens is None
    kept = orjson.loads(orjson.dumps(scrub(body)))  # which knows no whole number of more than 64 bits
    assert float(kept["usageMetadata"]["promptTokenCount"]) == float(tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000])
def test_a_hostile_answer_is_unreadable(value: str) -> None:
    with pytest.raises(Unreadable):
        read_object(f'{{"passed": {value}}}', {"passed"})


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1].evil.example",
        "http://[::1",
        "http://127.0.0.1\\@evil.example",
        "ftp://127.0.0.1",
        "https://gateway.example/v1?key=not-to-be-journalled",
    ],
)
def test_a_hostile_address_is_one_line(address: str) -> None:
    with pytest.raises(ValueError) as told:
        checked_url(address)
    assert "\n" not in str(told.value)


def test_addresses_of_this_machine_are_addresses() -> None:
    for address in ("http://[::1]", "http://[::1]:8000/v1", "http://127.0.0.1:1/", "http://localhost/v1"):
        assert checked_url(address) == address
