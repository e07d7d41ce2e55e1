"""Bodies, answers and addresses that are made to break a reader: each is one outcome or one line."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plantain.models.hosted.answers import Unreadable, read_object, scrub
from plantain.models.hosted.faults import LONGEST_WAIT_S, Fault, http_fault, read_body
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "code", "status", "message", "details", "retryDelay", "violations", "quotaValue"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@example(400, {"code": "\n"}, {})  # was two lines
@example(400, {"code": "x" * 5000}, {})  # was 5000 characters
@example(200, {"code": "\u00b2\u00b2\u00b2"}, {})  # digits to Python, no number: was a ValueError
@given(
    st.integers(100, 599),
    JSON,
    st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms"]), st.text()),
)
def test_any_error_body_gives_an_outcome_in_one_line(
    status: int, body: object, headers: dict[str, str]
) -> None:
    outcome = http_fault("gemini/m", status, orjson.dumps(body).decode(), headers)
    assert not outcome.ok
    assert outcome.reason
    assert "\n" not in outcome.reason
    assert len(outcome.reason) < 600
    assert outcome.retry_after is None or 0 <= outcome.retry_after <= LONGEST_WAIT_S
