"""The words that judges' replies are read by: names of the dimensions, numbers, and text without its markup."""

from __future__ import annotations

import re
import unicodedata

DIMENSIONS = ("editing_accuracy", "context_preservation", "visual_quality")

_LABELS = {
    "editing_accuracy": (r"(?i:edit(?:ing)?[ -]accuracy)", "EA"),
    "context_preservation": (r"(?i:context(?:ual)?[ -]preservation)", "CP"),
    "visual_quality": (r"(?i:visual[ -]quality)", "VQ"),
}
LABEL = re.compile(
    "|".join(
        rf"(?P<{name}>(?<![A-Za-z])(?:{long}(?:\s*[(\[]{short}[)\]])?|{short}(?:\s*[(\[]{long}[)\]])?)(?![A-Za-z]))"
        for name, (long, short) in _LABELS.items()
    )
)
"""A dimension's name, its letters, or one with the other in brackets."""
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
WORD = r"(?i:\b(?:" + "|".join(WORDS) + r")\b)"
NUMBER = rf"\d+(?:[.,]\d+)?|{WORD}"


def number_in(text: str) -> float | None:
    """A number in digits or as a word; None for any other word."""
    if text.lower() in WORDS:
        return float(WORDS.index(text.lower()))
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def plain(text: str) -> str:
    """Without markup: the words, numbers and separators that are left say the same."""
    raised = ("<super>", "<sub>", "<fraction>")
    text = "".join(f" ^{c}" if unicodedata.decomposition(c).startswith(raised) else c for c in text)
    text = unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2215", "/").replace("’", "'")
    text = re.sub(r"[\u2010-\u2015\u2212]", "-", text)
    text = re.sub(r"(?is)~~.*?~~|<(s|del|strike)>.*?</\1>", " ~ ", text)  # struck out, so nothing exact
    text = re.sub(r"</?[A-Za-z][^<>]*>", " ", text)
    text = re.sub(r"\\(?:boxed|text|textbf)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"(?<=\d)[*`\"“”$#\\']+(?=\d)", " ", text)  # what stood apart must not run together
    text = re.sub(r"(?<![A-Za-z])'|'(?![A-Za-z])", "", text)
    text = re.sub(r"(?m)^[ \t]*#+", "", text)
    text = re.sub(r"\$([^$\n]*)\$", r"\1", text)
    return re.sub(r"[*`\"“”\\]", "", text).replace("_", " ").replace("\r", "")
