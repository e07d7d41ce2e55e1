"""The words in which a reply may speak of a picture, and those in which it speaks of its scores and of itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_LISTS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text("utf-8")).items()
}
PICTURE, COUNTED, OPENING, OWN, PRAISE, TAGS = (
    _LISTS[name] for name in ("picture", "counted", "opening", "own", "praise", "tags")
)
KNOWN = PICTURE | _LISTS["known"]

SHORT = 6
"""Letters of the longest word that has to be known."""

OF_THE_REPLY = re.compile(
    r"""(?ix)\b(?:scor|rating|rate[ds]?\b|rescor|rerat|grad(?:e|es|ed|ing)\b|regrad|marks?\b|points?\b|scale|rescal
    |numb|numer|figures?\b|digit|percent|averag|median|maxim|minimum|likert|decim|rank|(?<!1-)(?<!2-)weight|thresh|criteri|confiden|certain
    |uncertain|unsure|actual|adjust|amend|annul|apolog|approx|arbitrar|assum|calibr|cancel|caveat|clarif|condition|conting
    |copied|copying|correct(?:ed|ing|ion|ions)\b|counterf|declin|deduct|depend|deserv|disagre|discard|disclaim|discount|disregard
    |doubl|downgrad|draft|dummy|duplic|earlier|equival|errat|estimat|exampl|exagger|exchang|fabricat|fictio|fictit|forget|generous
    |guess|halv|hesita|honest|however\s+you|hypoth|ignor|imagin(?!g)|inappl|instead(?!\s+of)|interch|interim|interpret|invalid|invent|invers
    |invert|judg|lenien|lowered|meaningless|mention|misread|misstat|mistak|misunder|mislabel|nominal|normali[sz]|notional|nullif
    |opinion|optimis|otherwise|outdat|overestim|overrul|overrat|overstat|oversc|penali?[tz]|pending|perhaps|pessimis|placehold
    |predict|prelim|presum|pretend|previous|probab|prompt|provided|providing|provision|quot|raised|random|rather|reassess
    |recalc|reckon|reconsid|recount|refer|reflection|regardless|reject|remark|repl(?:y|ies)\b|replica|respons|restat|retract
    |revers|revis|rewrit|rounding|sampl(?:e|es)\b|sarcas|satir|sceptic|skeptic|simulat|somewhere|speculat|strict|subject\s+to
    |subtract|supersed|suppos|template|tentativ|thought|transpos|underestim|underrat|undecid|unfair|unknown|unless
    |unreliab|untrue|updat|upgrad|void|whatever|whichever|withdr|withheld|withhold|describ(?:es|ing)|belong|concern|applies|account
    |compensat|guarante|verdict|assess|evaluat|decid|decision|answer|format|worthy|triple|quarter|twice|thrice
    |hundred|thousand|eleven|twelve|thirteen|fifteen|twenty|dozen|couple|looking|nowhere|nothing(?!\s+else)|everything(?!\s+else)|anything|swapped|reconsider|inclin
    |tempted|correction|ordinar|notch|inflat|deflat|charit|courtes|kinder|harsher|merci|pity|joking|kidding|serious)"""
)
"""Words that speak of scores, of the reply, or of what is merely supposed."""
