"""What else a reply says beside its scores, and whether a score can be believed with that beside it.

Words can take a number back in more ways than can be listed, in any language. So it is the other way round: all that a
reply says must be of a few kinds that leave a score alone: the words that lead to it, what the scale is, a total, a
table's head, and sentences about the picture. Anything else is a doubt, and with a doubt nothing is read.
"""

from __future__ import annotations

import re

from plantain.models.hosted.scores.vocabulary import (
    COUNTED,
    KNOWN,
    OF_THE_REPLY,
    OPENING,
    OWN,
    PICTURE,
    PRAISE,
    SHORT,
    TAGS,
)
from plantain.models.hosted.scores.words import NUMBER, WORD, number_in, plain

EDIT = " edit "
"""Stands for a dimension's name without a score, which sentences about the picture may have."""

_TAG = re.compile(r"</?\s*([A-Za-z!?][\w:.-]*)([^<>]*)>")
_STRANGE = re.compile(r"\[\s\]|[^A-Za-z0-9\s.,;:!()\[\]{}'/|%&#-]")
_BREAK = re.compile(r"(?<=[.!;:])\s+|[()\[\]{}|;]|\s-+\s|(?<=[:.!])$|:-+|-{2,}")
_MARKUP = re.compile(r"^[\s#-]*(?:\d{1,2}[.)]\s)?[\s#-]*")

_SURE = re.compile(r"(?i)(?:low|medium|moderate|high) (?:confidence|certainty)")
_BEGUN = ("editing accuracy", "context preservation", "contextual preservation", "visual quality")
"""Labels at whose beginning a reply may have been cut off."""
_NO_PRAISE = frozenset(
    (
        "a",
        "an",
        "the",
        "is",
        "edit",
        "result",
        "edited",
        "image",
        "was",
        "not",
        "i'm",
        "sorry",
        "that",
        "work",
    )
)
_JOINS = frozenset(("and", "with", "but", "json", "yaml", "text"))
_TOTAL = re.compile(
    rf"(?i)(?:(?:the|my|weighted)\s)*(?:overall|total|average|mean|sum)(?:\s(?:score|rating|quality|evaluation|result))?\s*"
    rf"(?:of all|\([^()]*\))?\s*(?:[:=|-]|is)*\s*\(?(?:{NUMBER})\)?(?:\s*(?:/|out of)\s*(?P<of>\d+))?\W*"
)
_HEAD_SCORE = re.compile(
    r"(?i)\s*(?:my |the )?(?:scores?|ratings?|values?|results?)?\W*(?:0\s*(?:-|to)\s*10|/\s*10|out of (?:10|ten))?\W*"
)
_HEAD_NAME = re.compile(
    r"(?i)\W*(?:criteri(?:on|a)|dimensions?|metrics?|aspects?|categor(?:y|ies)|names?|edit)\W*"
)
_HEAD_WORDS = re.compile(
    r"(?i)\W*(?:reasons?|reasoning|explanations?|justifications?|rationale|comments?|notes?|observations?|remarks?|evidence"
    r"|details?|description)?\W*"
)
_SCALE = re.compile(
    r"""(?ix)(?:\W|\b(?:(?:all|each|my|the|a|an|on|of|in|from|to|out|between|and|where|with|is|are|being|means?|for|use[ds]?|using
    |scores?|scored|ratings?|rated?|ranges?|ranging|scale|points?|given|higher|better|bad|worst|worse|poor|poorest|none|not|done
    |at|fully|completely|perfect|perfectly|best|excellent|flawless|ideal|good|integers?|whole|numbers?|fail(?:ed|ure)?|0|1|10
    |zero|one|ten|dimensions?|criteri(?:on|a))\b))+"""
)
_ENDS = re.compile(
    r"""(?ix)\b(?:0|1|zero|one)\b\s*(?:\([^()]*\)|(?:=|is|means)\W*\w+,?)?\s*(?:to|-|and|through|\.\.+)?\s*\b(?:10|ten)\b
    | \bout\sof\s(?:10|ten)\b | \bhigher\s(?:is|means)\sbetter
    | \b(?:10|ten)\s*(?:=|is|means)\s*(?:the\s)?(?:best|perfect|excellent|flawless)"""
)
_INVERTED = re.compile(
    r"""(?ix)\b(?:0|1|zero|one)\b(?:(?!\b(?:10|ten)\b).)*\b(?:perfect|best|excellent|flawless|ideal|good|fully|completely
        |done)\b
    | \b(?:10|ten)\b\D*\b(?:bad|worst|worse|poor\w*|none|not|fail\w*)\b | better\W+(?:is|means)?\W*(?:0|1|zero|one)\b"""
)
_DEFINED = re.compile(r"(?i)(?:edit )?(?:how|why|whether|the (?:degree|extent) to which)\b")

_COUNT = "|".join(sorted(COUNTED, key=len, reverse=True))
_NOT_BETWEEN = (
    r"(?!(?:for|of|off|in|on|to|at|less|more|lower|higher|by|under|below)\b)"
    r"(?!(?:because|with|from|as|is|due|per|or|and)\b)"
)
_MEASURED = re.compile(
    rf"""(?ix)\b(?:\d+(?:\.\d+)?\s*(?:x|by|to|-|and)\s*)?\d+(?:\.\d+)?\s?(?:mm|cm|px|pixels?|degrees?|hu|ml)\b
    | \b[TLCS]\d{{1,2}}\b | \bT[12]-weighted\b
    | \b(?:\d{{1,2}}|{WORD})\s+(?:of\sthe\s)?(?:{_NOT_BETWEEN}[a-z]+\s+)?(?:{_COUNT})\b
    | \b(?:\d{{1,2}}|{WORD})\sof\s(?:\d{{1,2}}|{WORD})\s(?:experts?|readers?|radiologists?)\b
    | \b(?:first|second|third|fourth|fifth|\dth|\d\dth)\s(?:rib|vertebra|ventricle)\b
    | \b(?:left|right|upper|lower|other|inner|outer|one)\shalf\b"""
)
_ROMAN = re.compile(r"\b(?:[IVX]{2,}|[VX])\b")
_QUANTITY = re.compile(
    rf"""(?ix)\d | {WORD} | % | \bno\b\s*(?:,|$) | \bit\sis\s(?:low|less|high|worse|more)
    | \b(?:half|once|first|second|third|fourth|fifth|sixth|last|latter)\b
    | \bformer\b(?!\s(?:location|site|place|position|lesion|tumou?r|mass|tube|catheter|device|region|area))"""
)
_SUPPOSED = re.compile(
    r"(?i)\bif\b(?!\s(?:a\s(?:little|bit)|slightly|somewhat|not)\b)|^\W*(?:had|were|should|with|without|unlike|only)\b"
    r"|\bonly\W*$"
)
_I = re.compile(
    r"(?i)(?<![\w'])i\b(?!'m\ssorry\b|\s(?:can\s|could\s|also\s|do\s)*(?:not\s)?(?:see|notice|observe|find|detect)\b)"
    r"|\b(?:see|find)\b.*\b(?:image|picture)s?\b|\bm(?:e|y|ine)\b"
)
_SORRY = re.compile(r"(?i)^\W*i'm sorry that\s")
_IT_IS = re.compile(
    r"(?i)\W*(?:it|they|this|these)\s"
    r"(?:(?:is|are|was|were|has|have|been|looks?|appears?|now|no\slonger|still|very|changed|shows|[a-z]+ly)\s)+"
    rf"(?:{'|'.join(sorted(PICTURE, key=len, reverse=True))})\b"
)
_COMPARATIVE = r"(?:low|high|less|more|few|better|worse|large|big|small)(?:er)?"
_MORE_OR_LESS = re.compile(
    rf"(?i)\b{_COMPARATIVE}\s*(?:$|,|(?:for|because|since|given|due|by|than|as|on|so|now|here|but|though)\b)"
)
_COMPARED = re.compile(
    rf"(?i)\b(?:is|are|was|were|looks?|appears?|seems?)\s(?:[a-z]+\s)?{_COMPARATIVE}\b"
    r"(?!\s*(?:for|because|since|given|due|by)\b)"
)
_ANOTHER = (
    r"(?:original|unedited|source|reference|input|before|other|wrong|another|untouched|baseline|truth|true|previous|old|new"
    r"|first|second|third|last|next)"
)
_LIKE_IT = re.compile(
    r"(?i)\b(?:with|to|from|like|as|in|than|match(?:es|ed)?|keeps|preserves|unlike)\s(?:in\s)?the\s"
    r"(?:original|unedited|source|reference|input|before|baseline|truth)\b"
)
"""Compared with another picture, not said of it."""
_OTHER_PICTURE = re.compile(
    rf"""(?ix)\b{_ANOTHER}(?:\s(?:image|picture|scan|film|photo|edit|slice|view|version|candidate|case)s?\b|\W*$)
    | \b(?:image|picture|scan|slice|film|edit|case|editor|model|reader|expert)s?\s(?:[A-Z]|\d+)\b"""
)
_VERB = re.compile(r"(?i)\b(?:is|are|was|were|has|have|looks?|appears?|shows?|remains?|unchanged|no)\b")
_PICTURES = re.compile(
    r"(?i)\b(?:image|picture|scan|film|photo|slice|original|reference|truth|before|after|source|input|target|output|editor|model|reader|expert|human|clinic|doctor)s?\b"
)


def strange_tag(reply: str) -> str:
    """The first tag of a reply that does more than lay it out: what is inside may be of something else."""
    tags = (tag for tag in _TAG.finditer(reply) if tag[1].lower() not in TAGS or "=" in tag[2])
    return next((tag[0] for tag in tags), "")


def doubt(text: str, stated: bool) -> str:
    """What in the words beside scores does not leave them alone; "" where all does.

    Args:
        text: of a reply, without the scores and their labels.
        stated: every score names its scale, so that "good" beside it cannot be of another.
    """
    for line in plain(text).split("\n"):
        if line.strip().startswith((">", "//")):
            return line.strip()
        if found := _in_line(line, stated):
            return found
    return ""


def _in_line(line: str, stated: bool) -> str:
    if strange := _STRANGE.search(line):
        return f"{strange[0]} in {line.strip()}"
    bare = _MARKUP.sub("", line).strip()
    if _TOTAL.fullmatch(bare.strip("| ")) or _about_the_scale(bare):
        total = _TOTAL.fullmatch(bare.strip("| "))
        return bare if total and total["of"] and number_in(total["of"]) not in (10.0, 20.0, 30.0) else ""
    if "|" in bare and (head := bare.strip("| ").split("|"))[0].strip() and _HEAD_NAME.fullmatch(head[0]):
        return "" if _head(head) else bare
    if _is_heading(bare):
        return bare
    for piece in _BREAK.split(line):
        words = _MARKUP.sub("", piece).strip(" ,.:;!/&#|'-")
        leads = piece.rstrip().endswith(":")
        if words and not (_own(words) or _about_the_scale(words) if leads else _harmless(words, stated)):
            return words
    return ""


def _head(cells: list[str]) -> bool:
    """Whether a table's second column holds scores, and the others words."""
    return (
        len(cells) > 1
        and bool(cells[1].strip())
        and bool(_HEAD_SCORE.fullmatch(cells[1]))
        and all(_HEAD_WORDS.fullmatch(cell) for cell in cells[2:])
    )


def _is_heading(line: str) -> bool:
    """A short line that is no sentence and names a picture or somebody: what is under it may be of that."""
    words = re.findall(r"[A-Za-z]+", line)
    return (
        0 < len(words) <= 5
        and not line.endswith((".", "!"))
        and bool(_PICTURES.search(line))
        and not _VERB.search(line)
        and not _own(line)
    )


def _own(words: str) -> bool:
    """All words lead to scores, and none of them is a picture's letter or another number."""
    return (
        all(
            word.lower() in OWN or word.lower() == "edit"
            for word in re.findall(r"[^\W\d_]+(?:'[a-z]+)?", words)
        )
        and not re.search(r"\d|^\W*[A-Za-z]\W*$", words)
        and not _OTHER_PICTURE.search(words)
    )


def leads_to_a_score(words: str) -> bool:
    """Whether what stands before a label in its statement is nothing but a way to it."""
    return _own(re.sub(r"^\W*\d{1,2}[.)]?[^\w%]*$|^\W*\d{1,2}[.)]\s", "", words))


def heading_of(lead: str) -> str:
    """The line above a label's own that may say of what its number is; "" where a sentence or a way to it stands."""
    *above, _ = ["", *lead.split("\n")]
    lines = [line.strip() for line in above]
    while lines and not lines[-1].strip("-#|: "):
        lines.pop()
    line = lines[-1] if lines else ""
    words = re.findall(r"[A-Za-z]+", line)
    said = line.endswith((".", "!", ":")) or re.search(r"[|\d]", line) or len(words) > 5 or _VERB.search(line)
    return "" if said or leads_to_a_score(line) else line


def _about_the_scale(line: str) -> bool:
    return bool(_SCALE.fullmatch(line)) and bool(_ENDS.search(line)) and not _INVERTED.search(line)


def _harmless(words: str, stated: bool) -> bool:
    if (
        any(name.startswith(words.lower()) for name in _BEGUN)
        or _SURE.fullmatch(words)
        or _about_the_scale(words)
        or _own(words)
    ):
        return True
    bare = [word.lower() for word in re.findall(r"[A-Za-z]+(?:'[a-z]+)?", words)]
    if not bare or all(word in _JOINS for word in bare):
        return not re.search(r"\d", words)
    if stated and all(word in PRAISE for word in bare) and not re.search(r"\d", words):
        return bool(set(bare) - _NO_PRAISE)
    return _about_the_picture(words)


def _about_the_picture(sentence: str) -> bool:
    """Begins with what is seen; no unknown short words, no talk of scores, and only measures and counts for numbers."""
    if _DEFINED.match(sentence):
        sentence = f"texture {sentence}"
    left = _SORRY.sub("", _MEASURED.sub(" region ", sentence.replace("well-", "")))
    left = " ".join(left.split())
    bare = [word.removesuffix("'s") for word in re.findall(r"[a-z]+(?:'[a-z]+)?", left.lower())]
    return (
        _begins_with_what_is_seen(bare, left)
        and all(len(word) > SHORT or word in KNOWN for word in bare)
        and not any(against.search(left) for against in (OF_THE_REPLY, _SUPPOSED, _QUANTITY, _ROMAN, _I))
        and not _MORE_OR_LESS.search(_COMPARED.sub(" ", left))
        and not _OTHER_PICTURE.search(_LIKE_IT.sub(" ", left))
        and "/" not in re.sub(r"(?<=[a-z])/(?=[a-z])", "", left)
    )


def _begins_with_what_is_seen(words: list[str], sentence: str) -> bool:
    if _IT_IS.match(sentence):
        return True
    seen = next((at for at, word in enumerate(words) if word in PICTURE), None)
    return seen is not None and all(len(word) > SHORT or word in OPENING for word in words[:seen])
