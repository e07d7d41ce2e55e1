"""Failures in a row: when they halt a run, and when they mean nothing."""

from __future__ import annotations

from plantain.calls.failure_streaks import MOST, TASKS, FailureStreaks
from plantain.records import OK, Outcome, OutcomeKind, Step

BAD = Outcome(OutcomeKind.MALFORMED, "400 INVALID_ARGUMENT: request req-17f is not accepted")


def fail(streaks: FailureStreaks, times: int, outcome: Outcome = BAD, tasks: int = TASKS) -> Outcome:
    last = OK
    for number in range(times):
        last = streaks.judged("gemini/m", Step.EDIT, f"task-{number % tasks}", outcome)
    return last


def test_last_of_too_many_failures_is_fatal_and_says_what_to_do() -> None:
    streaks = FailureStreaks()
    assert fail(streaks, MOST - 1) == BAD
    outcome = fail(streaks, 1)
    assert outcome.fatal and outcome.kind is OutcomeKind.MALFORMED
    assert f"{MOST} edit calls in a row ended so" in outcome.reason
    assert "plantain retry --outcome malformed --step edit" in outcome.reason


def test_one_picture_that_fails_in_all_rounds_halts_nothing() -> None:
    assert fail(FailureStreaks(), 3 * MOST, tasks=1) == BAD


def test_any_answer_ends_a_row_also_a_refusal() -> None:
    for answer in (OK, Outcome(OutcomeKind.REFUSED), Outcome(OutcomeKind.NO_IMAGE)):
        streaks = FailureStreaks()
        fail(streaks, MOST - 1)
        assert streaks.judged("gemini/m", Step.EDIT, "task", answer) == answer
        assert fail(streaks, MOST - 1) == BAD


def test_models_and_steps_have_rows_of_their_own() -> None:
    streaks = FailureStreaks()
    fail(streaks, MOST - 1)
    assert not streaks.judged("gemini/m", Step.JUDGE, "task", BAD).fatal
    assert not streaks.judged("gemini/other", Step.EDIT, "task", BAD).fatal


def test_different_failures_halt_only_a_model_that_never_answered() -> None:
    for answered in (False, True):
        streaks = FailureStreaks()
        if answered:
            streaks.judged("gemini/m", Step.EDIT, "task", OK)
        for number in range(MOST):
            said = Outcome(OutcomeKind.MALFORMED, "wide" if number % 2 else "small")
            outcome = streaks.judged("gemini/m", Step.EDIT, f"task-{number}", said)
        assert outcome.fatal is not answered


def test_numbers_and_names_of_requests_make_no_difference() -> None:
    streaks = FailureStreaks()
    streaks.judged("gemini/m", Step.EDIT, "task", OK)
    for number in range(MOST):
        said = Outcome(OutcomeKind.MALFORMED, f"400 BAD: request r{number} has 30{number} tokens")
        outcome = streaks.judged("gemini/m", Step.EDIT, f"task-{number}", said)
    assert outcome.fatal


def test_nothing_but_refusals_halts_before_more_instructions_are_bought() -> None:
    """25 refusals of 25 edits: the twentieth says so. One other answer before, and refusals are about instructions."""
    refused = Outcome(OutcomeKind.REFUSED, "moderation_blocked")
    streaks = FailureStreaks()
    said = [fail(streaks, 1, refused) for _ in range(MOST - 1)]
    assert not any(outcome.fatal for outcome in said)
    streaks.judged("gemini/m", Step.EDIT, "task-1", BAD)  # a failure is no answer
    last = streaks.judged("gemini/m", Step.EDIT, "another", refused)
    assert not last.fatal  # twenty, of two tasks
    streaks = FailureStreaks()
    outcome = fail(streaks, MOST, refused)
    assert outcome.fatal and "all of the first 20 edit calls were refused" in outcome.reason
    streaks = FailureStreaks()
    streaks.judged("gemini/m", Step.EDIT, "task", OK)
    assert not fail(streaks, 5 * MOST, refused).fatal
