"""Error bodies as providers send them, each with where it was seen and the outcome that it is for us.

"gemini errors": ai.google.dev/gemini-api/docs/troubleshooting; "openai errors": developers.openai.com/api/docs/guides/
error-codes; "openai sdk": the literals of openai 3.54's `ResponseError`; threads by repository and number.
"""
# ruff: noqa: E501  (a body is one line of the table)

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import orjson
import pytest

from plantain.files.secrets import Secret
from plantain.models.hosted.faults import failed_answer, http_fault
from plantain.models.hosted.openai.batch import OpenAIJobs
from plantain.models.hosted.openai.wire import OpenAIWire
from plantain.records import OutcomeKind
from plantain.roles.options import ProviderOptions

NOW = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)
"""Noon in California; its midnight is 08:00 UTC of the next day, 12 hours on."""

LIMITED, TRANSPORT, REFUSED, MALFORMED = (
    OutcomeKind.RATE_LIMITED,
    OutcomeKind.TRANSPORT,
    OutcomeKind.REFUSED,
    OutcomeKind.MALFORMED,
)


@dataclass(frozen=True)
class Case:
    source: str
    status: int
    body: object
    kind: OutcomeKind
    fatal: bool = False
    said: str = ""
    wait: float | None = None
    headers: dict[str, str] = field(default_factory=dict)
    model: str = "openai/m"


def google(status: int, name: str, said: str, *details: dict[str, object]) -> dict[str, object]:
    body: dict[str, object] = {"code": status, "message": said, "status": name}
    return {"error": body | ({"details": list(details)} if details else {})}


def quota(*ids: str, value: str = "") -> dict[str, object]:
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    each = {"quotaMetric": metric, "quotaDimensions": {"location": "global", "model": "m"}} | (
        {"quotaValue": value} if value else {}
    )
    return {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{**each, "quotaId": id} for id in ids],
    }


def info(delay: str) -> dict[str, object]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def reason(word: str) -> dict[str, object]:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": word, "domain": "googleapis.com"}


def openai(
    said: str, code: str | None, kind: str = "invalid_request_error", param: str | None = None
) -> dict[str, object]:
    return {"error": {"message": said, "type": kind, "param": param, "code": code}}


PLAN = "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
DAY, MINUTE = (
    "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
    "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
)
TOKENS = "GenerateContentInputTokensPerModelPerMinute-FreeTier"
OPENS = "opens again at 2026-11-23 08:00 UTC"

GEMINI = [
    Case(
        "gemini-cli 8437",
        429,
        google(429, "RESOURCE_EXHAUSTED", PLAN, quota(TOKENS, MINUTE, DAY), info("18s")),
        LIMITED,
        True,
        OPENS,
        43_200.0,
    ),
    Case(
        "comic-translate 403",
        429,
        google(
            429,
            "RESOURCE_EXHAUSTED",
            f"{PLAN} \n* Quota exceeded for metric: x, limit: 20, model: m\nPlease retry in 58.821668433s.",
            quota(DAY, value="20"),
            info("58s"),
        ),
        LIMITED,
        True,
        OPENS,
        43_200.0,
    ),
    Case(
        "js-genai 1322",
        429,
        google(
            429,
            "RESOURCE_EXHAUSTED",
            f"{PLAN} \n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-2.5-flash-preview-image\n* ",
        ),
        LIMITED,
        True,
        "quota for gemini/m is 0",
    ),
    Case(
        "a limit of 0 in its details",
        429,
        google(429, "RESOURCE_EXHAUSTED", PLAN, quota(MINUTE, value="0"), info("30s")),
        LIMITED,
        True,
        "is 0",
    ),
    Case(
        "a limit of 20 is not 0",
        429,
        google(
            429, "RESOURCE_EXHAUSTED", f"{PLAN} limit: 20, please retry in 9.5s", quota(MINUTE, value="20")
        ),
        LIMITED,
        wait=9.5,
    ),
    Case(
        "gemini minute",
        429,
        google(429, "RESOURCE_EXHAUSTED", PLAN, quota(MINUTE, value="10"), info("41s")),
        LIMITED,
        wait=41.0,
    ),
    Case(
        "gemini paid per day",
        429,
        google(
            429, "RESOURCE_EXHAUSTED", PLAN, quota("GenerateRequestsPerDayPerProjectPerModel", value="250")
        ),
        LIMITED,
        True,
        OPENS,
        43_200.0,
    ),
    Case(
        "paid images per day",
        429,
        google(429, "RESOURCE_EXHAUSTED", PLAN, quota("GenerateImagesPerDayPerProject", value="100")),
        LIMITED,
        True,
        OPENS,
        43_200.0,
    ),
    Case(
        "js-genai 1841",
        429,
        google(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
        LIMITED,
    ),
    Case(
        "gemini-cli 12207",
        429,
        [
            google(
                429,
                "RESOURCE_EXHAUSTED",
                "Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.",
            )
        ],
        LIMITED,
    ),
    Case(
        "dyad 3626",
        429,
        google(
            429,
            "RESOURCE_EXHAUSTED",
            "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.",
        ),
        LIMITED,
        True,
        "nothing left to pay with",
    ),
    Case(
        "the same as 402",
        402,
        google(402, "PAYMENT_REQUIRED", "Your prepayment credits are depleted."),
        LIMITED,
        True,
        "nothing left to pay with",
    ),
    Case(
        "AI Studio's spending cap",
        429,
        google(
            429,
            "RESOURCE_EXHAUSTED",
            "Your project has exceeded its monthly spending cap. Please go to AI Studio to manage your project spend cap.",
        ),
        LIMITED,
        True,
        "nothing left to pay with",
    ),
    Case(
        "gemini errors 400",
        400,
        google(400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
        MALFORMED,
    ),
    Case(
        "gemini errors precondition",
        400,
        google(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
        TRANSPORT,
        True,
        "may not use",
    ),
    Case(
        "gemini errors 403",
        403,
        google(403, "PERMISSION_DENIED", "Your API key doesn't have the required permissions."),
        TRANSPORT,
        True,
        "may not use",
    ),
    Case(
        "gemini errors 404",
        404,
        google(
            404,
            "NOT_FOUND",
            "models/m is not found for API version v1beta, or is not supported for generateContent.",
        ),
        TRANSPORT,
        True,
        "no gemini/m",
    ),
    Case(
        "closed to new users",
        404,
        google(
            404,
            "NOT_FOUND",
            "This model models/m is no longer available to new users. Please update your code to use a newer model.",
        ),
        TRANSPORT,
        True,
        "may be retired",
    ),
    Case(
        "gemini errors 500",
        500,
        google(
            500,
            "INTERNAL",
            "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
        ),
        TRANSPORT,
    ),
    Case(
        "gemini errors 503",
        503,
        google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        TRANSPORT,
    ),
    Case(
        "gemini errors 504",
        504,
        google(504, "DEADLINE_EXCEEDED", "The service is unable to finish processing within the deadline."),
        TRANSPORT,
    ),
    Case("cancelled", 499, google(499, "CANCELLED", "The operation was cancelled."), TRANSPORT),
    Case(
        "bad key",
        400,
        google(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            reason("API_KEY_INVALID"),
        ),
        TRANSPORT,
        True,
        "key was not accepted",
    ),
    Case(
        "expired key",
        400,
        google(
            400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", reason("API_KEY_INVALID")
        ),
        TRANSPORT,
        True,
        "key was not accepted",
    ),
    Case(
        "leaked key",
        403,
        google(403, "PERMISSION_DENIED", "Your API key was reported as leaked. Please use another API key."),
        TRANSPORT,
        True,
    ),
    Case(
        "API off",
        403,
        google(
            403,
            "PERMISSION_DENIED",
            "Generative Language API has not been used in project 1 before or it is disabled.",
            reason("SERVICE_DISABLED"),
        ),
        TRANSPORT,
        True,
    ),
    Case(
        "no token",
        401,
        google(
            401,
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials.",
            reason("ACCESS_TOKEN_TYPE_UNSUPPORTED"),
        ),
        TRANSPORT,
        True,
    ),
    Case(
        "too many tokens",
        400,
        google(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        MALFORMED,
    ),
    Case(
        "unreadable picture",
        400,
        google(
            400,
            "INVALID_ARGUMENT",
            "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
        ),
        MALFORMED,
    ),
    Case(
        "too large",
        413,
        "<html><title>413 Request Entity Too Large</title></html>",
        MALFORMED,
        False,
        "too large",
    ),
    Case(
        "a gateway's page",
        502,
        "<html><title>502 Bad Gateway</title></html>",
        TRANSPORT,
        False,
        "an HTML page",
    ),
    Case("an error within 200", 200, google(503, "UNAVAILABLE", "overloaded"), TRANSPORT),
    Case(
        "quota within 200",
        200,
        google(429, "RESOURCE_EXHAUSTED", PLAN, quota(DAY)),
        LIMITED,
        True,
        OPENS,
        43_200.0,
    ),
]

OPENAI = [
    Case(
        "OpenHands 998",
        429,
        openai(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        LIMITED,
        True,
        "nothing left to pay with",
    ),
    Case(
        "billing limit",
        400,
        openai(
            "Billing hard limit has been reached.", "billing_hard_limit_reached", "billing_limit_user_error"
        ),
        LIMITED,
        True,
        "nothing left",
    ),
    Case(
        "not active",
        429,
        openai(
            "Your account is not active, please check your billing details on our website.",
            "billing_not_active",
            "billing_not_active",
        ),
        LIMITED,
        True,
    ),
    Case(
        "account gone",
        401,
        openai(
            "The OpenAI account associated with this API key has been deactivated.", "account_deactivated"
        ),
        LIMITED,
        True,
    ),
    Case(
        "requests a minute",
        429,
        openai(
            "Rate limit reached for m in organization org-1 on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 120ms.",
            "rate_limit_exceeded",
            "requests",
        ),
        LIMITED,
        wait=0.12,
    ),
    Case(
        "tokens a minute",
        429,
        openai(
            "Rate limit reached for m in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try again in 8s.",
            "rate_limit_exceeded",
            "tokens",
        ),
        LIMITED,
        wait=8.0,
    ),
    Case(
        "images a minute",
        429,
        openai(
            "Rate limit reached for gpt-image-2 (for limit gpt-image) in organization org-1 on input-images per min: Limit 5, Used 5, Requested 1. Please try again in 12s.",
            "rate_limit_exceeded",
            "input-images",
        ),
        LIMITED,
        wait=12.0,
    ),
    Case(
        "requests a day, soon free",
        429,
        openai(
            "Rate limit reached for m on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.",
            "rate_limit_exceeded",
            "requests",
        ),
        LIMITED,
        wait=432.0,
    ),
    Case(
        "requests a day, late",
        429,
        openai(
            "Rate limit reached for m on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 3h30m0s.",
            "rate_limit_exceeded",
            "requests",
        ),
        LIMITED,
        True,
        "opens again at 2026-11-22 23:30 UTC",
        12_600.0,
    ),
    Case(
        "larger than a minute's tokens",
        429,
        openai(
            "Request too large for m in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000.",
            "rate_limit_exceeded",
            "tokens",
        ),
        LIMITED,
        True,
        "one request is more",
    ),
    Case(
        "headers before words",
        429,
        openai("Rate limit reached. Please try again in 1s.", "rate_limit_exceeded", "tokens"),
        LIMITED,
        wait=20.0,
        headers={"retry-after": "20"},
    ),
    Case(
        "flex is full", 429, openai("Resource unavailable", "resource_unavailable", "server_error"), LIMITED
    ),
    Case("slow down", 503, openai("Slow Down", "slow_down", "server_error"), TRANSPORT),
    Case(
        "overloaded",
        503,
        openai("The engine is currently overloaded, please try again later", None, "server_error"),
        TRANSPORT,
    ),
    Case(
        "openai errors 500",
        500,
        openai("The server had an error while processing your request", None, "server_error"),
        TRANSPORT,
    ),
    Case(
        "wrong key",
        401,
        openai("Incorrect API key provided: [key].", "invalid_api_key"),
        TRANSPORT,
        True,
        "key was not accepted",
    ),
    Case(
        "no member",
        401,
        openai("You must be a member of an organization to use the API", None),
        TRANSPORT,
        True,
    ),
    Case(
        "address not allowed", 401, openai("Your IP is not authorized", "ip_not_authorized"), TRANSPORT, True
    ),
    Case(
        "country",
        403,
        openai(
            "Country, region, or territory not supported",
            "unsupported_country_region_territory",
            "request_forbidden",
        ),
        TRANSPORT,
        True,
        "may not use",
    ),
    Case(
        "not verified",
        403,
        openai("Your organization must be verified to use the model `gpt-image-2`.", None),
        TRANSPORT,
        True,
        "may not use",
    ),
    Case(
        "no such model",
        404,
        openai("The model `m` does not exist or you do not have access to it.", "model_not_found"),
        TRANSPORT,
        True,
        "may be retired",
    ),
    Case(
        "no access to it",
        403,
        openai("Project `p` does not have access to model `m`", "model_not_found"),
        TRANSPORT,
        True,
        "may be retired",
    ),
    Case(
        "blocked edit",
        400,
        openai(
            "Your request was rejected by the safety system.",
            "moderation_blocked",
            "image_generation_user_error",
        ),
        REFUSED,
    ),
    Case(
        "older form of it",
        400,
        openai("Your request was rejected as a result of our safety system.", "content_policy_violation"),
        REFUSED,
    ),
    Case(
        "flagged prompt",
        400,
        openai(
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
            "invalid_prompt",
        ),
        REFUSED,
    ),
    Case(
        "flagged picture",
        400,
        openai("The image was rejected.", "image_content_policy_violation", "image_generation_user_error"),
        REFUSED,
    ),
    Case(
        "Azure's filter",
        400,
        {
            "error": {
                "message": "The response was filtered",
                "type": None,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        REFUSED,
    ),
    Case(
        "Azure's inner code alone",
        400,
        {
            "error": {
                "message": "filtered",
                "code": "400",
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        REFUSED,
    ),
    Case(
        "Azure's limit",
        429,
        {
            "error": {
                "code": "429",
                "message": "Requests to the ChatCompletions_Create Operation have exceeded token rate limit. Please retry after 8 seconds.",
            }
        },
        LIMITED,
        wait=8.0,
    ),
    Case(
        "Azure's deployment",
        404,
        {
            "error": {
                "code": "DeploymentNotFound",
                "message": "The API deployment for this resource does not exist.",
            }
        },
        TRANSPORT,
        True,
    ),
    Case(
        "unknown parameter",
        400,
        openai("Unknown parameter: 'input_fidelity'.", "unknown_parameter", param="input_fidelity"),
        MALFORMED,
        True,
        "does not take this setting",
    ),
    Case(
        "unsupported value",
        400,
        openai(
            "Unsupported value: 'temperature' does not support 0.2 with this model.",
            "unsupported_value",
            param="temperature",
        ),
        MALFORMED,
        True,
    ),
    Case(
        "unsupported parameter",
        400,
        openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model.", "unsupported_parameter"
        ),
        MALFORMED,
        True,
    ),
    Case(
        "context",
        400,
        openai("Your input exceeds the context window of this model.", "context_length_exceeded"),
        MALFORMED,
    ),
    Case(
        "unreadable picture",
        400,
        openai("Invalid image file or mode for image 1", "invalid_image_file"),
        MALFORMED,
    ),
    Case(
        "data elsewhere",
        400,
        openai("This project's data must stay in its region.", "data_residency_mismatch"),
        TRANSPORT,
        True,
        "may not use",
    ),
    Case(
        "OpenRouter's credits",
        402,
        {"error": {"code": 402, "message": "This request requires more credits, or fewer max_tokens."}},
        LIMITED,
        True,
        "nothing left",
    ),
    Case(
        "DeepSeek's balance",
        402,
        openai("Insufficient Balance", "invalid_request_error", "unknown_error"),
        LIMITED,
        True,
    ),
    Case(
        "vLLM's context",
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 8192 tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
        MALFORMED,
    ),
    Case(
        "vLLM's model",
        404,
        {"object": "error", "message": "The model `m` does not exist.", "type": "NotFoundError", "code": 404},
        TRANSPORT,
        True,
    ),
    Case("FastAPI", 422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, MALFORMED),
    Case("a proxy's limit", 429, "Too Many Requests", LIMITED, wait=5.0, headers={"Retry-After": "5"}),
    Case("timed out at a proxy", 524, "<html>524: A timeout occurred</html>", TRANSPORT),
]
assert len(GEMINI) + len(OPENAI) >= 60

FAILED = [
    ("server_error", TRANSPORT, False),
    ("vector_store_timeout", TRANSPORT, False),
    ("failed_to_download_image", TRANSPORT, False),
    ("rate_limit_exceeded", LIMITED, False),
    ("insufficient_quota", LIMITED, True),
    ("data_residency_mismatch", TRANSPORT, True),
    ("invalid_prompt", REFUSED, False),
    ("bio_policy", REFUSED, False),
    ("misalignment_policy_violation", REFUSED, False),
    ("image_content_policy_violation", REFUSED, False),
    ("invalid_image", MALFORMED, False),
    ("image_too_large", MALFORMED, False),
    ("image_parse_error", MALFORMED, False),
    ("unsupported_image_media_type", MALFORMED, False),
    ("something_new", MALFORMED, False),
]
"""Codes of an answer with status 200 that failed: the literals of the openai SDK's `ResponseError`, and two others."""


@pytest.mark.parametrize(
    "case",
    [*GEMINI, *OPENAI],
    ids=[*(f"gemini: {c.source}" for c in GEMINI), *(f"openai: {c.source}" for c in OPENAI)],
)
def test_error_body(case: Case) -> None:
    content = case.body if isinstance(case.body, str) else orjson.dumps(case.body).decode()
    model = "gemini/m" if case in GEMINI else case.model
    outcome = http_fault(model, case.status, content, case.headers, NOW)
    assert (outcome.kind, outcome.fatal) == (case.kind, case.fatal), outcome.reason
    assert case.said in outcome.reason
    assert outcome.retry_after == (None if case.wait is None else pytest.approx(case.wait))


@pytest.mark.parametrize(("code", "kind", "fatal"), FAILED)
def test_answer_that_says_it_failed(code: str, kind: OutcomeKind, fatal: bool) -> None:
    outcome = failed_answer("openai/m", {"code": code, "message": "words"})
    assert (outcome.kind, outcome.fatal) == (kind, fatal)


@pytest.mark.parametrize("case", OPENAI, ids=lambda case: case.source)
def test_the_same_in_a_batch_is_the_same(case: Case) -> None:
    """A line of an error file holds status and body of what would have come online; only headers are lost there."""
    if isinstance(case.body, str) or case.headers or case.status == 402:
        return
    from plantain.models.hosted.faults import Fault

    jobs = OpenAIJobs(
        OpenAIWire("openai/m", Secret("k" * 20), ProviderOptions(), "https://nowhere.example/v1")
    )
    with pytest.raises(Fault) as caught:
        jobs.read(
            {"custom_id": "1", "response": {"status_code": case.status, "body": case.body}, "error": None}
        )
    assert (caught.value.outcome.kind, caught.value.outcome.fatal) == (case.kind, case.fatal)
