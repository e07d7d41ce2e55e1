from __future__ import annotations

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from plantain.models.hosted.faults import LONGEST_WAIT_S, http_fault

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
