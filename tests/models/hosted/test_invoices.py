"""The ledger against invoices: what providers' answers come to, priced line by line by hand from their price pages.

An invoice's lines are (tokens, dollars per million); its total is our sum by hand. Rates are here as
literals from the providers' pages (by genai-prices 0.2.3 and the sources that known.toml names), not from our table.
"""
# ruff: noqa: E501  (a bill is one line of the table)

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import bodies
from fakes.caller import options_of
from plantain.calls.limits import most_of
from plantain.files.secrets import Secret
from plantain.journal.rows import from_json, to_json
from plantain.models.hosted.batch.client import BatchClient
from plantain.models.hosted.gemini.batch import GeminiBatch
from plantain.models.hosted.gemini.models import GeminiWire
from plantain.models.hosted.gemini.models import image_model as gemini_image_model
from plantain.models.hosted.gemini.models import read_usage as read_gemini
from plantain.models.hosted.openai.batch import OpenAIBatch
from plantain.models.hosted.openai.chat import read_usage as read_chat
from plantain.models.hosted.openai.images import image_model as openai_image_model
from plantain.models.hosted.openai.responses import read_usage as read_responses
from plantain.models.hosted.openai.wire import OpenAIWire
from plantain.models.registry import price_of
from plantain.records import Price, Step, Usage
from plantain.records.tasks import RECIPE
from plantain.runs.settings_file import Limits
from plantain.runs.terms import Terms, model_limits, price_under

DAY = date(2026, 11, 22)
NO_KEY = Secret("no key")


@dataclass(frozen=True)
class Invoice:
    """One answer and its bill."""

    what: str
    model: str
    body: bodies.Body
    lines: list[tuple[int, float]]
    total: float
    batch: bool = False
    size: str = ""
    quality: str = ""
    day: date = DAY


def with_usage(body: bodies.Body, **changed: object) -> bodies.Body:
    """The same answer with other counts; one that is None is left out."""
    usage = body["usage"]
    assert isinstance(usage, dict)
    return body | {"usage": {name: n for name, n in (usage | changed).items() if n is not None}}


G8, G31, I31 = "gemini-3.8-flash", "gemini-3.1-pro-preview", "gemini-3.1-flash-image"

INVOICES = [
    # Gemini, words
    Invoice("plain", G8, bodies.gemini(), [(3_800, 0.75), (350, 3.75)], 0.0041625),
    Invoice("thinking", G31, bodies.gemini(thoughts=900), [(3_800, 2), (1_250, 12)], 0.0226),
    Invoice("cached", G31, bodies.gemini(cached=2_048), [(1_752, 2), (2_048, 0.2), (350, 12)], 0.0081136),
    Invoice("last day of a price", G8, bodies.gemini(), [(3_800, 0.75), (350, 3.75)], 0.0041625, day=date(2026, 12, 31)),
    Invoice("first day of the next", G8, bodies.gemini(), [(3_800, 1.5), (350, 7.5)], 0.008325, day=date(2027, 1, 1)),
    Invoice("cut while thinking", G31, bodies.gemini(3_800, None, 8_192, finish="MAX_TOKENS"), [(3_800, 2), (8_192, 12)], 0.105904),
    Invoice("cut while answering", G8, bodies.gemini(3_800, 7_000, 1_192, finish="MAX_TOKENS"), [(3_800, 0.75), (8_192, 3.75)], 0.03357),
    Invoice("blocked before", G31, bodies.gemini(3_800, None, blocked="PROHIBITED_CONTENT"), [(3_800, 2)], 0.0076),
    Invoice("blocked after", G8, bodies.gemini(3_800, 0, 400, finish="SAFETY"), [(3_800, 0.75), (400, 3.75)], 0.00435),
    Invoice("tools read, too", G8, bodies.gemini(3_000, 350, tool=800), [(3_800, 0.75), (350, 3.75)], 0.0041625),
    Invoice("a total with thoughts left out", G31, bodies.gemini(3_800, 350, total=5_050), [(3_800, 2), (1_250, 12)], 0.0226),
    Invoice("thoughts within the answer, and again", G31, bodies.gemini(3_800, 1_250, 900, total=5_050), [(3_800, 2), (1_250, 12)], 0.0226),
    # By Google's page, caching in batches of some models costs as much as in the standard tier, of others half.
    Invoice("batch, cached", G31, bodies.gemini(cached=2_048), [(1_752, 1), (2_048, 0.2), (350, 6)], 0.0042616, batch=True),
    Invoice("batch, cached at half", G8, bodies.gemini(cached=2_048), [(1_752, 0.375), (2_048, 0.0375), (350, 1.875)], 0.00139005, batch=True),
    Invoice("Vertex, bought by the hour", G8, bodies.gemini(traffic="PROVISIONED_THROUGHPUT"), [], 0.0),
    # Gemini, images
    Invoice("image and words", I31, bodies.gemini(1_500, 1_150, image=1_120, images=1), [(1_500, 0.5), (1_120, 60), (30, 3)], 0.06804),
    Invoice("image after thinking", I31, bodies.gemini(1_500, 1_120, 230, image=1_120, images=1), [(1_500, 0.5), (1_120, 60), (230, 3)], 0.06864),
    # 25 images without details: 25 x (1,500 at 0.5, 1,120 at 60, 170 at 3)
    Invoice("25 without details", I31, bodies.gemini(37_500, 32_250, images=25), [(37_500, 0.5), (28_000, 60), (4_250, 3)], 1.7115),
    Invoice("4K with details", I31, bodies.gemini(1_500, 2_520, image=2_520, images=1), [(1_500, 0.5), (2_520, 60)], 0.15195, size="4K"),
    Invoice("image blocked", I31, bodies.gemini(1_500, None, 150, finish="IMAGE_SAFETY"), [(1_500, 0.5), (150, 3)], 0.0012),
    Invoice("batch image", I31, bodies.gemini(1_500, 1_120, image=1_120, images=1), [(1_500, 0.25), (1_120, 30)], 0.033975, batch=True),
    Invoice("cached, thinking and an image", I31, bodies.gemini(6_000, 1_170, 500, cached=4_096, prompt_image=1_120, image=1_120, images=1), [(6_000, 0.5), (1_120, 60), (550, 3)], 0.07185),
    Invoice("a count without the image in its details", I31, bodies.gemini(1_500, 12, image=1_120, images=1, total=2_632), [(1_500, 0.5), (1_132 - 12, 60), (12, 3)], 0.067986),
    # OpenAI, words
    Invoice("thinking", "gpt-5", bodies.responses(), [(3_800, 1.25), (1_250, 10)], 0.01725),
    Invoice("cached", "gpt-5", bodies.responses(cached=2_048), [(1_752, 1.25), (2_048, 0.125), (1_250, 10)], 0.014946),
    Invoice("cut", "gpt-5-mini", bodies.responses(3_800, 8_192, 8_192, status="incomplete", why="max_output_tokens"), [(3_800, 0.25), (8_192, 2)], 0.017334),
    Invoice("filtered", "gpt-5", bodies.responses(3_800, 60, 0, status="incomplete", why="content_filter"), [(3_800, 1.25), (60, 10)], 0.00535),
    Invoice("declined", "gpt-5.4", bodies.responses(3_800, 40, 20, refusal="no"), [(3_800, 2.5), (40, 15)], 0.0101),
    Invoice("cache written", "gpt-6-luna", bodies.responses(cache_write=2_048), [(1_752, 0.1), (2_048, 0.125), (1_250, 0.5)], 0.0010562),
    Invoice("cache written and read", "gpt-6.2-sol", bodies.responses(9_000, cached=4_096, cache_write=2_048), [(2_856, 2), (4_096, 0.1), (2_048, 2.5), (1_250, 10)], 0.0237416),
    Invoice("written left out", "gpt-5", with_usage(bodies.responses(), output_tokens=None), [(3_800, 1.25), (1_250, 10)], 0.01725),
    Invoice("batch, cached", "gpt-5.4-mini", bodies.responses(cached=1_024), [(2_776, 0.375), (1_024, 0.0375), (1_250, 2.25)], 0.0038919, batch=True),
    # OpenAI, images
    Invoice("with words", "gpt-image-1.5", bodies.images(40, 323, 4_260, of_text=100), [(40, 5), (323, 8), (4_160, 32), (100, 10)], 0.136904),
    Invoice("cached image", "gpt-image-1.5", bodies.images(140, 1_000, 272, cached=1_024, cached_image=900), [(16, 5), (124, 1.25), (100, 8), (900, 2), (272, 32)], 0.011539),
    Invoice("high, no usage", "gpt-image-2", bodies.images(None), [(7_024, 30)], 0.21072, quality="high"),
    Invoice("chosen and named by the provider", "gpt-image-2.5-sunburst", bodies.images(None, quality="medium"), [(439, 30)], 0.01317),
    Invoice("read without details", "gpt-image-2", with_usage(bodies.images(40, 1_200, 196), input_tokens_details=None), [(1_240, 8), (196, 30)], 0.0158),
    Invoice("batch edit", "gpt-image-2", bodies.images(40, 1_200, 196), [(40, 2.5), (1_200, 4), (196, 15)], 0.00784, batch=True),
]  # fmt: skip


def name_of(model: str) -> str:
    if "/" in model:
        return model
    return f"{'gemini' if model.startswith('gemini') else 'openai'}/{model}"


def usage_of(invoice: Invoice) -> Usage:
    """Usage that our adapters read from an answer, online or in a batch's answer file."""
    name, body = name_of(invoice.model), invoice.body
    quality = {"image_quality": invoice.quality} if invoice.quality else {}
    options = options_of(name, image_size=invoice.size, jobs=BatchClient(), **quality)
    if name.startswith(("gemini/", "vertex/")):
        wire = GeminiWire(name, NO_KEY, options)
        if invoice.batch:
            body = GeminiBatch(wire, options).read({"key": "1", "response": body})
        return gemini_image_model(wire, options).read_usage(body) if "image" in name else read_gemini(body)
    there = OpenAIWire(name, NO_KEY, options, "https://nowhere.example/v1")
    if invoice.batch:
        answer: bodies.Body = {"status_code": 200, "request_id": "", "body": body}
        body = OpenAIBatch(there, options, "").read(
            {"id": "1", "custom_id": "1", "response": answer, "error": None}
        )
    return openai_image_model(there, options).read_usage(body) if "image" in name else read_responses(body)


@pytest.mark.parametrize("invoice", INVOICES, ids=lambda invoice: f"{invoice.model}: {invoice.what}")
def test_invoice(invoice: Invoice, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(tokens * rate for tokens, rate in invoice.lines) / 1e6 == pytest.approx(
        invoice.total, rel=1e-9
    )
    monkeypatch.setattr("plantain.models.registry.today", lambda: invoice.day)
    name = name_of(invoice.model)
    section = options_of(name, **({"transport": "batch"} if invoice.batch else {}))
    price = price_under(Terms((name,), Limits(), {name.partition("/")[0]: section}), name)
    assert price is not None
    usage = from_json(Usage, to_json(usage_of(invoice)))  # as the journal keeps it
    assert price.cost(usage) == pytest.approx(invoice.total, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "section", "bill"),
    [
        # OpenAI's page: addresses of regions cost a tenth more, for models released from 2026-03-05 on.
        ("openai/gpt-5.4", {"base_url": "https://eu.api.openai.com/v1"}, 3_800 * 2.75 + 1_250 * 16.5),
        # Vertex AI's: all places but "global" do, for Gemini 3 and later.
        ("vertex/gemini-3.1-pro-preview", {"location": "europe-west4"}, 3_800 * 2.2 + 1_250 * 13.2),
        ("vertex/gemini-3.1-pro-preview", {"location": "global"}, 3_800 * 2 + 1_250 * 12),
        ("vertex/gemini-2.5-pro", {"location": "europe-west4"}, 3_800 * 1.25 + 1_250 * 10),
    ],
)
def test_addresses_of_regions_have_their_own_price(name: str, section: dict[str, str], bill: float) -> None:
    terms = Terms((name,), Limits(), {name.partition("/")[0]: options_of(name, **section)})
    price = price_under(terms, name)
    assert price is not None
    assert price.cost(Usage(input_tokens=3_800, output_tokens=1_250)) == pytest.approx(bill / 1e6)


@pytest.mark.parametrize(("completion", "total"), [(1_250, 5_050), (350, 5_050)])
def test_thinking_of_local_servers_is_counted_once(completion: int, total: int) -> None:
    """OpenAI: 3,800 + 1,250 (900 of them thought) = 5,050. xAI and Google's compatible address: 350 + 900."""
    usage = read_chat(bodies.chat(3_800, completion, 900, total))
    assert (usage.input_tokens, usage.output_tokens, usage.thinking_tokens) == (3_800, 1_250, 900)


@pytest.mark.parametrize("name", ["prompt_cache_hit_tokens", "cached_tokens"])
def test_cached_tokens_are_read_where_deepseek_and_moonshot_count_them(name: str) -> None:
    body = with_usage(bodies.chat(3_800, 350, 0, 4_150), prompt_tokens_details=None, **{name: 2_048})
    usage = read_chat(body)
    assert usage.cached_tokens == 2_048


def test_an_unpriced_tier_has_no_cost() -> None:
    answers = (
        read_responses(bodies.responses(tier="priority")),
        read_gemini(bodies.gemini(traffic="ON_DEMAND_FLEX")),
    )
    for model, usage in zip(("openai/gpt-5", "gemini/gemini-3.8-flash"), answers, strict=True):
        price = price_of(model, DAY)
        assert price is not None and price.cost(usage) is None
    mine = Price(1.0, 1.0, source=RECIPE)  # a price of the recipe's own is taken at its word
    assert mine.cost(answers[0]) == pytest.approx(0.00505)


def test_an_answer_without_token_counts_has_no_cost() -> None:
    """Words are never written from nothing: a gateway that counts none has not counted, and is not free."""
    price = Price(input_per_m=2.0, output_per_m=12.0)
    counts = ("input_tokens", "output_tokens", "total_tokens")
    for body in (
        bodies.responses(0, 0, 0),
        with_usage(bodies.responses(), **dict.fromkeys(counts[1:])),
        with_usage(bodies.responses(), **dict.fromkeys(counts)),
    ):
        assert price.cost(read_responses(body)) is None
    for body in (bodies.chat(0, 0, 0, 0), bodies.chat(3_800, 0, 0, 3_800), bodies.chat(0, 350, 0, 350)):
        assert price.cost(read_chat(body)) is None
    for body in (bodies.gemini(0, 0), bodies.gemini(3_800, None), bodies.gemini(3_800, 0)):
        assert price.cost(read_gemini(body)) is None
    nothing_came = bodies.responses(3_800, 0, 0, status="failed") | {"output": []}
    assert price.cost(read_responses(nothing_came)) == pytest.approx(0.0076)


@pytest.mark.parametrize("cached", [3_801, 10**9])
def test_more_cached_than_input_tokens_have_no_cost(cached: int) -> None:
    """Both SDKs: what came from a cache is part of the prompt. Such an answer was booked at $1,200."""
    price = Price(input_per_m=2.0, output_per_m=12.0, cached_per_m=1.2)
    chat = bodies.chat(3_800, 350, 0, 4_150, cached=cached)
    for usage in (
        read_gemini(bodies.gemini(cached=cached)),
        read_responses(bodies.responses(cached=cached)),
        read_chat(chat),
    ):
        assert price.cost(usage) is None
    image = read_gemini(bodies.gemini(1_500, 1_120, cached=cached, image=1_120, images=1))
    by_tokens = Price(input_per_m=0.5, output_per_m=3.0, image_output_per_m=60.0)
    assert by_tokens.cost(image) == pytest.approx(1_120 * 60e-6), (
        "the image is known, and nearly all of the bill"
    )


def test_an_image_without_token_counts_is_not_free() -> None:
    by_tokens = Price(input_per_m=0.5, output_per_m=3.0, image_output_per_m=60.0)
    assert by_tokens.cost(Usage(images=1)) is None
    assert Price(image_out_each=0.04).cost(Usage(images=2)) == pytest.approx(0.08)


COUNTS, SOME = st.integers(0, 20_000), st.integers(1, 20_000)


@settings(deadline=None)
@given(SOME, SOME, COUNTS, COUNTS, st.booleans())
def test_every_adapter_keeps_the_one_token_convention(
    prompt: int, answered: int, thought: int, cached: int, batch: bool
) -> None:
    """By the two SDKs' texts a total is all input and all output, wherever thinking is counted."""
    cached = min(cached, prompt)
    theirs = bodies.gemini(prompt, answered, thought, cached=cached)
    ours = bodies.responses(prompt, answered + thought, thought, cached=cached)
    for invoice in (Invoice("", G31, theirs, [], 0, batch), Invoice("", "gpt-5", ours, [], 0, batch)):
        usage = usage_of(invoice)
        assert usage.total_tokens == prompt + answered + thought
        assert usage.output_tokens == answered + thought
        assert usage.thinking_tokens == thought <= usage.output_tokens
        assert usage.cached_tokens == cached <= (usage.input_tokens or 0)
        rates = Price(input_per_m=2.0, output_per_m=12.0, cached_per_m=0.2)
        bill = (prompt - cached) * 2.0 + cached * 0.2 + (answered + thought) * 12.0
        assert rates.cost(usage) == pytest.approx(bill / 1e6)


@pytest.mark.parametrize(
    ("size", "quality", "tokens"), [("", "", 7_024), ("2048x2048", "high", 28_096), ("", "low", 196)]
)
def test_no_image_of_a_known_size_costs_more_than_its_reservation(
    size: str, quality: str, tokens: int
) -> None:
    """gpt-image-2 at 30 dollars per million: 0.21 for the dearest of 1024x1024, four times that for twice the side."""
    name = "openai/gpt-image-2"
    section = options_of(name, image_size=size, image_quality=quality, max_output_tokens=1)
    rules = model_limits(Terms((name,), Limits(), {"openai": section}), name)
    assert rules.price is not None
    bill = rules.price.cost(
        Usage(input_tokens=1_300, output_tokens=tokens, output_image_tokens=tokens, images=1)
    )
    assert bill is not None
    assert bill <= most_of(rules.price, Step.EDIT, rules.max_output_tokens, rules.image_tokens)
