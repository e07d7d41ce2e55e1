"""Read answers without guessing: fields of a provider's JSON body, base64 images, and the text of a model's answer."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping, Sequence

import orjson

from plantain.pixels.decode import BadImage

JsonObject = dict[str, object]

OPAQUE = 1_000
"""A string without a space that is longer than this is data, not words."""

LONGEST_TEXT = 20_000

MOST = 10**9
"""No call has a count beyond this; its price would end a run."""

_DATA_URL = re.compile(r"\s*data:[^,]{0,100};base64,")
_URL_SAFE = str.maketrans("-_", "+/")


def load_json(content: str | bytes) -> object:
    """Decode JSON; lone surrogates, which orjson refuses, become "?". Raise ValueError if it is not JSON."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        value = json.loads(text)
        return orjson.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def error_of(content: str) -> JsonObject:
    """Find the error object in a response's body, at any known place; return {} if there is none."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return {}
    error = body.get("error", body)
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return {}
    return (
        error if "message" in error or "detail" not in error else {**error, "message": str(error["detail"])}
    )


def kind_of(content: str) -> str:
    """Describe a response's body that is not JSON: "an empty body", "an HTML page" or its number of characters."""
    start = content.lstrip()[:200]
    if not start:
        return "an empty body"
    return "an HTML page" if start.startswith("<") else f"a body of {len(content)} characters"


def scrub(value: object) -> object:
    """Shorten a JSON value for the journal: long strings are cut or replaced by their length, huge numbers by text."""
    if isinstance(value, dict):
        return {str(name): scrub(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [scrub(inner) for inner in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if not isinstance(value, str) or len(value) <= OPAQUE:
        return value
    if " " not in value[:OPAQUE]:
        return f"({len(value)} characters of data)"
    return (
        value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]} (cut from {len(value)} characters)"
    )


def objects(value: object) -> list[JsonObject]:
    """Return the JSON objects among a list's values; [] if the value is not a list."""
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def child(body: JsonObject, name: str) -> JsonObject:
    """Return a body's field that is an object; {} if it is missing or of another type."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def text(body: JsonObject, name: str) -> str:
    """Return a body's field that is a string; "" if it is missing or of another type."""
    value = body.get(name)
    return value if isinstance(value, str) else ""


def count(body: JsonObject, name: str) -> int | None:
    """Return a body's field that is a count; None if it is missing, negative, above a billion, or of another type.

    Gateways write whole numbers as 350.0 or, as protocol buffers do for long ones, as "350".
    """
    value = body.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST else None


def from_base64(text: str) -> bytes:
    """Decode base64: standard or URL-safe, with line breaks, unpadded, or a data URL. Raise BadImage if invalid."""
    import pybase64  # comes with the extras of hosted models

    if start := _DATA_URL.match(text):
        text = text[start.end() :]
    if "\n" in text:
        text = "".join(text.split())
    if "-" in text or "_" in text:
        text = text.translate(_URL_SAFE)
    try:
        return pybase64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadImage("the editor's image is not valid base64") from None


def to_base64(data: bytes) -> str:
    """Encode bytes in standard base64."""
    import pybase64

    return pybase64.b64encode_as_string(data)


def reported_cost(usage: JsonObject) -> float | None:
    """Return `usage.cost`, which OpenRouter and servers like it report in US dollars; None if missing or not a cost."""
    value = usage.get("cost")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MOST else None


def stated(fields: Mapping[str, object]) -> JsonObject:
    """Return the fields of a request without those that are None or ""."""
    return {name: value for name, value in fields.items() if value not in (None, "")}


def add_counts(*counts: int | None) -> int | None:
    """Return the sum of the known counts; None if none is known."""
    known = [n for n in counts if n is not None]
    return sum(known) if known else None


def whole_usage(
    read: int | None,
    written: int | None,
    total: int | None,
    *,
    least: int | None,
    cached: int | None,
    answered: bool,
) -> tuple[int | None, int | None]:
    """Infer omitted or miscounted token counts; return (tokens read, tokens written), None where unknown.

    Args:
        read, written, total: counts in the answer.
        least: the part of `written` that is not thinking; a total below `read` plus this is wrong.
        cached: tokens read from a cache; if more than `read`, the server counts them separately, or `read` is unknown.
        answered: True if words or an image came: a zero then means unknown; otherwise unknown `written` means zero.
    """
    if read is not None and cached is not None and cached > read:
        if total != read + cached + (written or 0):
            return None, written or None
        read += cached
    if answered:
        read, written = read or None, written or None
    if read is None and written is not None and total is not None and total > written:
        read = total - written
    if read is not None and total is not None and total > read and total - read >= (least or 0):
        written = total - read
    if written is None and read is not None and not answered:
        written = 0
    return read, written


LONGEST_ANSWER = 200_000
LONGEST_INSTRUCTION = 4_000
MOST_STARTS = 200
"""Opening braces at which a report is looked for in prose, so that hostile text costs little."""

MOST_NESTED_TAGS = 3
"""Of `<response><instruction>...` and the like, for the same reason."""

_THINK = r"(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning(?:_content)?|reflection|analysis|scratchpad|inner_monologue)"
_OPENING = rf"<\|?{_THINK}\|?>|\[{_THINK}\]|◁{_THINK}▷|<\|begin_of_thought\|>|<\|channel>thought|<unused94>(?:thought)?"
_CLOSING = rf"<\|?/{_THINK}\|?>|\[/{_THINK}\]|◁/{_THINK}▷|<\|end_of_thought\|>|<channel\|>|<unused95>"
_THINKING = re.compile(rf"({_OPENING})|({_CLOSING})", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(
    r"\A.*(?:<\|channel\|>final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>)", re.DOTALL
)
_HARMONY_END = re.compile(r"<\|(?:end|return|call|start)\|>.*", re.DOTALL)
_HARMONY_WITHOUT_TOKENS = re.compile(r"\Aanalysis.*assistantfinal", re.DOTALL)
_NAMES = r"(?:final[_ ]?)?answer|final|response|output|result|(?:edit[_ ]?)?instruction|prompt"
_TAGGED = re.compile(
    rf"<({_NAMES}|\|begin_of_(?:box|solution)\|)(?:\s[^<>]*)?>(.*?)(?:</\1>|<\|end_of_(?:box|solution)\|>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{(?:\\text\s*\{)?(.*?)\}?\}[\s.$]*\Z", re.DOTALL)
_TOKEN = re.compile(
    r"(?:<\|(?:im_start|start_header_id)\|>|<start_of_turn>)(?:assistant|model)|<\|\w+\|>|\[\|\w+\|\]|</?s>|"
    rf"<end_of_turn>|\[/?INST\]|</(?:{_NAMES})>|\ufeff",
    re.IGNORECASE,
)
"""Tokens of chat formats, with the role after the start of a turn."""

_OWN_TURN = (
    r"(?:\[/INST\]|<\|(?:im_start|start_header_id)\|>assistant|<\|assistant\|>|<start_of_turn>model|"
    r"^#+ Response:|^ASSISTANT:)"
)
_ECHO = re.compile(rf"\A.*{_OWN_TURN}(?=.*\w)", re.DOTALL | re.MULTILINE)
_TURN_END = re.compile(
    r"(?:<\|(?:im_end|eot_id|endoftext)\|>|<end_of_turn>|</s>)"
    rf"(?!\s*(?:{_OWN_TURN}|(?:```\w*\s*)?\{{))",
    re.MULTILINE,
)
"""The end of the answer; not that of a prompt or of reasoning, which the model's own turn or its object follows."""

_TURN_START = re.compile(r"[<\[]|(?:user|system|human)\b", re.IGNORECASE)
"""After its own turn, a model without a stop token invents the user's; before it, a server may repeat the prompt."""

_STRUCK = re.compile(r"(?!\A)<s>((?:(?!</?s>).)*)</s>", re.DOTALL)
"""Strike-through in HTML; at the start, `<s>` is the token of chat formats."""

_FENCE = re.compile(r"```(?:[\w-]*[ \t]*\n)?(.*?)```", re.DOTALL)
_FENCE_TWICE = re.compile(r"\A```[\w-]*\s*(?=```)|(?<=```)\s*```\s*\Z")
_PREFACE = re.compile(
    r"\A(?:(?:sure|certainly|of course|absolutely|ok(?:ay)?|great)\b[,.! ]\s*)?[#*_ ]*"
    r"(?:(?:here(?:'s|’s| is| are)|(?:below|the following|this) is)\b[^\n:]{0,80}:"
    r"|(?:(?:the|my|your|final|revised|refined|new|updated|edit(?:ing|ed)?) )*"
    rf"(?:{_NAMES}|assistant|edit|revised)(?: is)?[*_ ]*(?::|(?=\n)))[*_]*\s*|"
    r"\A(?:sure|certainly|of course|absolutely|ok(?:ay)?)[,.!]\s+|"
    r"\A(?s:.*)^[#*_ ]*(?:(?:the|final|revised|refined|edit(?:ing)?|image|round \d+) )*"
    r"(?:instruction|prompt)[*_]*:[*_]*\s*|"
    r"\A(?>(?s:.*?)^[#*_ ]*(?:(?:(?:the|first|initial) )*draft|round \d+)\b[^\n:]{0,40}:)"
    r"(?s:.*)^[#*_ ]*(?:the )?(?:final|revised)[*_]*:[*_]*\s*|"
    r"\A[^\n:]{0,300}\b(?:instruction|prompt)\b[^\n:]{0,80}:[*_]*\s*\n\s*",
    re.IGNORECASE | re.MULTILINE,
)
_REMARK = re.compile(
    r"(?:\n|(?<=[.!?\"”*`])[ \t])[ \t]*[(*_]*(?:(?:please )?let me know|(?:i )?hope (?:this|that)|"
    r"(?:please )?feel free to (?:ask|reach|request|tell)|(?:would|do) you (?:like|want)|"
    r"if you(?:['’]d| would) like|if you (?:want|need|have|prefer) (?:a |an |any |me |some )?"
    r"(?:another|changes|different|me to|more (?:options|versions)|questions)\b|"
    r"\d+ words\)|(?:explanation|rationale|reason(?:ing)?|justification|word count|confidence(?: score)?|"
    r"negative prompt)[*_]*:)[^\n]*\Z",
    re.IGNORECASE,
)
_TITLED = re.compile(rf"(?ims)^#+ [^\n]*\b(?:{_NAMES})[\W_]*?$(.*?)(?=^#+ |\Z)")
_NO_INSTRUCTION = re.compile(
    r"(?ims)\A(?:i['’]m|i am|i['’]ll|i will|i can(?:not|['’]t)|i see|let me|as an ai|sorry|unfortunately)\b|```|^#+ |"
    r"^[*_ ]*(?:(?:option|version|variant|alternative) (?:2|b)\b|alternatively\b|or[*_:]*$)"
)
_OBJECT = re.compile(r"\{\s*(?:[\"']|\w+:)")

_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "'": "'", "‘": "’", "`": "`", "**": "**", "*": "*"}


class Unreadable(ValueError):
    """Raised for an answer that is not in the required form. The message, one line, is sent back to the model."""


def without_thoughts(text: str) -> str:
    """Strip thoughts, chat format tokens, and surrounding tags or boxes from a reply; return the answer.

    Thoughts are `<think>` blocks (also in square brackets; the opening one may be in the prompt) and all channels of
    the harmony format except `final`.

    Raises:
        Unreadable: the answer is empty, its thoughts never end, or it is longer than `LONGEST_ANSWER`.
    """
    answer, thinking = "", False
    for part in filter(None, _THINKING.split(text)):
        if not (mark := _THINKING.fullmatch(part)):
            answer += "" if thinking else part
        elif mark[1]:
            thinking = True
        else:
            answer, thinking = (answer if thinking else ""), False
    if "<|channel|>" in answer:
        final = _FINAL_CHANNEL.match(answer)
        answer = _HARMONY_END.sub("", answer[final.end() :]) if final else ""
    answer = _STRUCK.sub(r"\1", answer.strip())
    own = _TURN_END.split(answer, maxsplit=1)[0]
    answer = own if own and not _TURN_START.match(own) else answer
    answer = _ECHO.sub("", _HARMONY_WITHOUT_TOKENS.sub("", answer)).strip()
    answer = _TURN_END.split(answer, maxsplit=1)[0] or answer
    for _ in range(MOST_NESTED_TAGS):
        if tagged := [content for _, content in _TAGGED.findall(answer) if content.strip()]:
            answer = tagged[-1]
    answer = _TOKEN.sub("", answer).strip()
    if not answer:
        raise Unreadable("the answer was empty")
    if len(answer) > LONGEST_ANSWER:
        raise Unreadable("the answer is far too long")
    return answer


def read_instruction(text: str) -> str:
    r"""Extract the instruction from a writer's reply.

    Removes thoughts, a `\boxed{}`, "Here is the instruction:", a code fence, a list marker, quotation marks, and
    a JSON object whose only text is the instruction.

    Raises:
        Unreadable: the instruction is empty or longer than `LONGEST_INSTRUCTION`.
    """
    answer = without_thoughts(text)
    for _ in range(10 if len(answer) < 10 * LONGEST_INSTRUCTION else 0):  # layers of wrapping
        if boxed := _BOXED.search(answer):
            answer = boxed[1].strip()
        if len(fenced := _FENCE.findall(_FENCE_TWICE.sub("", answer))) == 1:
            answer = fenced[0].strip()
        answer = _REMARK.sub("", _PREFACE.sub("", answer)).strip().removesuffix("\n---")
        if len(titled := _TITLED.findall(answer)) == 1:
            answer = titled[0].strip()
        answer = _only_text(re.sub(r"\A#+ (?:[^\n]*\n\s*(?=\S))?", "", answer)).strip()
        if "\n" not in answer:
            answer = re.sub(r"\A(?:[-•*]|1[.)])\s+", "", answer)
        if all(line.startswith(">") for line in answer.splitlines()):
            answer = re.sub(r"(?m)^> ?", "", answer)
        for opening, closing in _QUOTES.items():
            inner = answer[len(opening) : -len(closing)].strip()
            if answer == f"{opening}{inner}{closing}" and opening not in inner and closing not in inner:
                answer = inner
    if not answer:
        raise Unreadable("the answer was empty; answer with the instruction alone")
    if _NO_INSTRUCTION.search(answer):
        raise Unreadable("the answer was no single instruction; answer with the instruction alone")
    if len(answer) > LONGEST_INSTRUCTION:
        raise Unreadable(
            f"the answer has {len(answer)} characters; answer with an instruction of two to six sentences"
        )
    return answer.encode("utf-8", "replace").decode()  # half a surrogate pair, as JSON may have it


def _only_text(answer: str) -> str:
    """Return the text of an answer in JSON: a string, or an object's instruction or only string; else the answer.

    Raise Unreadable for objects that cannot be read, or without one instruction.
    """
    found = _OBJECT.search(answer)
    start = 0 if answer[:1] in ("{", "[", '"') or not found else found.start()
    try:
        value, end = _JSON.raw_decode(answer, start)
    except (ValueError, RecursionError):
        if found:
            raise Unreadable("the answer was JSON that cannot be read") from None
        return answer
    while isinstance(value, (list, dict)) and len(value) == 1:
        inner = next(iter(value.values() if isinstance(value, dict) else value))
        if isinstance(value, dict) and isinstance(inner, str):
            break
        value = inner
    alone = start == 0 and not answer[end:].strip()
    value = None if _OBJECT.search(answer, end) else value  # of several, none is chosen
    if isinstance(value, dict):
        texts = {name.casefold(): inner for name, inner in value.items() if isinstance(inner, str)}
        named = [inner for name, inner in texts.items() if re.fullmatch(_NAMES, name)]
        value = next(iter(named or (texts.values() if len(value) == 1 and alone else ())), None)
    elif not (alone or found):
        return answer
    if isinstance(value, str):
        return value
    if not (alone or found):
        return answer
    raise Unreadable("the answer was JSON without one instruction; answer with the instruction alone")


def read_object(text: str, marks: set[str]) -> JsonObject:
    """Find the JSON object in a text that has one of the keys `marks`: bare, fenced or in prose.

    Raises:
        Unreadable: there is none, there are several different ones, or a key has two values.
    """
    answer = without_thoughts(text)
    if answer.startswith('"'):
        answer = _only_text(answer)
    reports: list[JsonObject] = []
    at, starts = answer.find("{"), 0
    while at >= 0 and starts < MOST_STARTS:
        starts += 1
        try:
            value, end = _JSON.raw_decode(answer, at)
        except Unreadable:
            raise
        except (ValueError, RecursionError):  # also a number of more digits than Python reads
            at = answer.find("{", at + 1)
            continue
        is_report = isinstance(value, dict) and bool(marks & value.keys())
        if is_report and value not in reports:
            reports.append(value)
        at = answer.find("{", end if is_report else at + 1)
    if not reports:
        raise Unreadable("there was no complete JSON object with the report in the answer")
    if len(reports) > 1:
        raise Unreadable(f"there were {len(reports)} different reports in the answer; give one")
    return reports[0]


def record(prompt: str, sampling: str, answers: Sequence[JsonObject]) -> str:
    """Return a call's record for the journal as JSON: prompt label, sampling, and the shortened body of each answer."""
    kept = {"prompt": prompt, "sampling": sampling, "answers": [scrub(answer) for answer in answers]}
    return orjson.dumps(kept).decode()


def _one_value_per_key(pairs: list[tuple[str, object]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        value = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        if key in found and found[key] != value:
            raise Unreadable(f"{key!r} was answered twice and differently")
        found[key] = value
    return found


def _no_constant(name: str) -> float:
    raise Unreadable(f"{name} is not JSON")


_JSON = json.JSONDecoder(object_pairs_hook=_one_value_per_key, parse_constant=_no_constant, strict=False)
