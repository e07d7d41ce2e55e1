from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plantain.models.hosted.faults import Fault, http_fault, read_body
from plantain.models.hosted.limits import LONGEST_WAIT_S, retry_after
from plantain.records import OutcomeKind


def info(delay: object) -> dict[str, object]:
    return {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]}


@pytest.mark.parametrize(
    ("headers", "error", "expected"),
    [
        ({}, {}, None),
        ({"Retry-After": "7"}, {}, 7.0),
        ({"retry-after": "0.5"}, {}, 0.5),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, {}, 1.5),  # the finer one is the provider's own
        ({}, info("17s"), 17.0),
        ({}, info("1.203608125s"), 1.203608125),
        ({"Retry-After": "5"}, info("53s"), 53.0),  # the longer of both
        ({"Retry-After": "soon"}, {}, None),
        ({"Retry-After": "-3"}, {}, 0.0),
        ({"Retry-After": "nan"}, {}, None),
        ({"Retry-After": "1e12"}, {}, LONGEST_WAIT_S),
        ({}, info(17), None),
        ({}, {"details": "none"}, None),
    ],
)
def test_wait(headers: dict[str, str], error: dict[str, object], expected: float | None) -> None:
    assert retry_after(headers, error) == expected


@pytest.mark.parametrize("seconds", [-60, 45, 3600])
def test_wait_until_a_date(seconds: int) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    wait = retry_after({"Retry-After": until}, {})
    assert wait is not None
    assert max(0, seconds - 5) <= wait <= max(0, seconds)


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


@given(st.text())
def test_any_text_as_error_body_gives_an_outcome(text: str) -> None:
    assert http_fault("openai/m", 500, text, {}).kind is OutcomeKind.TRANSPORT


@given(st.binary(max_size=60))
def test_any_body_is_an_object_or_a_fault(content: bytes) -> None:
    try:
        assert isinstance(read_body(content), dict)
    except Fault as fault:
        assert fault.outcome.kind in (OutcomeKind.TRANSPORT, OutcomeKind.MALFORMED)


def test_lone_surrogates_do_not_lose_an_answer() -> None:
    assert read_body(rb'{"text": "a\ud800b"}') == {"text": "a?b"}


def test_html_is_not_repeated() -> None:
    outcome = http_fault("gemini/m", 502, "<html><script>x()</script></html>", {})
    assert outcome.reason == "502: an HTML page"
