"""Replies made to be misread, each with the editing accuracy that it states on the scale of ten, or None.

None where a careful person would not put a number down: another scale, a range, a guess, two numbers, a count of
something else or of another picture, a number that is supposed, taken back or not said. The expectations were written
by hand, before the parser read them; a 4 on a scale of 5 may be left unscored (it is, everywhere) but never read as 4.
"""

from not_said import NOT_SAID, SOMETHING_ELSE

_OTHER_SCALES = r"""
Editing Accuracy: 4 (out of 5)
Editing Accuracy: 4 (of 5)
Editing Accuracy: 4 (max 5)
Editing Accuracy: 4 (maximum: 5)
Editing Accuracy: 4, out of a possible 5
Editing Accuracy: 4 of 5
Editing Accuracy: 4 [/5]
Editing Accuracy: 4 points out of 5
Editing Accuracy: 4 points of a possible five
Editing Accuracy: four out of five
Editing Accuracy: four (of five)
Editing Accuracy: 4\n(out of 5)
Editing Accuracy:\n4\nout of 5
Editing Accuracy: 4★
Editing Accuracy: ★★★★ (4)
Editing Accuracy: 4 stars
Editing Accuracy: 4⭐
Editing Accuracy: 4 / 5.0
Editing Accuracy: 4/five
Editing Accuracy (1-5): 4
Editing Accuracy (out of 5): 4
Editing Accuracy [1 to 5]: 4
Editing Accuracy (/5): 4
Editing Accuracy score (max 5): 4
Scale: 1-5\nEditing Accuracy: 4
Scores range from 1 to 5.\nEditing Accuracy: 4
I rate from 1 (bad) to 5 (perfect).\nEditing Accuracy: 4
All scores are out of 5.\n- Editing Accuracy: 4
All scores are out of five.\n- Editing Accuracy: 4
On a five-point scale:\nEditing Accuracy: 4
Using a 5-point Likert scale\nEditing Accuracy: 4
Ratings on a scale of 5\nEditing Accuracy: 4
| Criterion | Score (1-5) |\n|---|---|\n| Editing Accuracy | 4 |
| Criterion | Score / 5 |\n|---|---|\n| Editing Accuracy | 4 |
| Criterion | Score (/5) |\n|---|---|\n| Editing Accuracy | 4 |
| Criterion | Score (%) |\n|---|---|\n| Editing Accuracy | 8 |
| Criterion | Max | Score |\n|---|---|---|\n| Editing Accuracy | 5 | 4 |
| Criterion | Score | Max |\n|---|---|---|\n| Editing Accuracy | 4 | 5 |
Editing Accuracy | 4 | 5
Scores in percent:\nEditing Accuracy: 9
Normalised scores between 0 and 1.\nEditing Accuracy: 1
Scores in [0, 1].\nEditing Accuracy: 1
Score range 0..1\nEditing Accuracy: 0.7
Editing Accuracy: 0.85
Editing Accuracy: 8 %
Editing Accuracy: 8 per cent of the change is right
Editing Accuracy: 8/100
Editing Accuracy: 8/10.5
Editing Accuracy: 8/1
Editing Accuracy: 8/010.0.1
Editing Accuracy: 8 out of 100
Editing Accuracy: 80 (of 100)
Editing Accuracy: 9 out of 20 points
Editing Accuracy: B+ (8)
Editing Accuracy: grade 2
{"editing_accuracy": {"score": 4, "max": 5}}
{"editing_accuracy": {"score": 4, "max_score": 5}}
{"editing_accuracy": {"score": 4, "maxScore": 5}}
{"editing_accuracy": {"score": 4, "out_of": 5}}
{"editing_accuracy": {"score": 4, "outOf": "5"}}
{"editing_accuracy": {"score": 4, "scale": "1-5"}}
{"editing_accuracy": {"score": 4, "scale": "five-point"}}
{"editing_accuracy": {"score": 4, "range": "one to five"}}
{"scale": "zero to five", "editing_accuracy": 4}
{"editing_accuracy": {"score": 4, "range": [1, 5]}}
{"editing_accuracy": {"value": 4, "maximum": 5}}
{"editing_accuracy": 4, "max": 5}
{"scale": "1-5", "editing_accuracy": 4}
{"scale": {"min": 1, "max": 5}, "scores": {"editing_accuracy": 4}}
{"editing_accuracy": 4, "editing_accuracy_max": 5}
{"max_score": 100, "editing_accuracy": 8}
{"scores": [{"dimension": "Editing Accuracy", "score": 4, "max": 5}]}
{"criterion": "Editing Accuracy", "score": 4, "total": 5}
{"criterion": "Editing Accuracy", "score": 4, "points_possible": 5}
{"editing_accuracy": {"score": 4, "full_marks": 5}}
{"editing_accuracy": {"score": 4, "limit": "5"}}
{"editing_accuracy": {"score": 4, "min": 0, "ceiling": 5}}
{"editing_accuracy": {"score": 4, "unit": "stars"}}
{"editing_accuracy": {"score": 4, "note": "out of 5"}}
{"editing_accuracy": {"score": 8, "unit": "%"}}
1 = worst, 5 = best\nEditing Accuracy: 4
Editing Accuracy: 4\n5 means excellent.
Editing Accuracy: 4\nVisual Quality: 3\n(each from 1 to 5)
Rated between 0 and 1. Editing Accuracy: 1
Scores out of 5: {"editing_accuracy": 4}
{"editing_accuracy": "4/5"}
{"editing_accuracy": "4 (out of 5)"}
{"editing_accuracy": "4 of 5"}
{"editing_accuracy": "4 stars"}
{"editing_accuracy": "80%"}
{"editing_accuracy": 0.8}
{'editing_accuracy': 4, 'max': 5}
editing_accuracy:\n  score: 4\n  max: 5
<editing_accuracy max="5">4</editing_accuracy>
<score name="Editing Accuracy" max="5">4</score>
"""
_NOT_ONE = r"""
Editing Accuracy: <5/10
Editing Accuracy: < 5/10
Editing Accuracy: <5
Editing Accuracy: >5/10
Editing Accuracy: <= 5
Editing Accuracy: ≤5/10
Editing Accuracy: ≥ 8
Editing Accuracy: ±8
Editing Accuracy: 7~8
Editing Accuracy: 7～8
Editing Accuracy: 7~8/10
Editing Accuracy: 7–8
Editing Accuracy: 7 - 8
Editing Accuracy: 7—8/10
Editing Accuracy: 7/8
Editing Accuracy: 7, 8
Editing Accuracy: 7; 8
Editing Accuracy: 10. Lowered by 2.
Editing Accuracy: 10 - 2 = 8
Editing Accuracy: 5*2
Editing Accuracy: 8/10 = 4/5
Editing Accuracy: 7 8
Editing Accuracy: 7 | 4
| Editing Accuracy | 7 | 4 |
| Editing Accuracy | 7/10 | 4/10 |
Editing Accuracy: 7:4
Editing Accuracy: 7 and 8
Editing Accuracy: 7, maybe 8
Editing Accuracy: seven or eight
Editing Accuracy: eight, maybe nine
Editing Accuracy: eight and a half
Editing Accuracy: 7 (8 without the seam)
Editing Accuracy: 7 (or 8)
Editing Accuracy: 7/10 (or 8/10)
Editing Accuracy: 7/10 (perhaps 8 out of 10)
Editing Accuracy: 7 ± 1
Editing Accuracy: 7 (±1)
Editing Accuracy: 7±1/10
Editing Accuracy: 8 -> 6
Editing Accuracy: 8 => 6
Editing Accuracy: 8 → 6/10
Editing Accuracy: 8/10, revised to 6/10
Editing Accuracy: 8/10\nRevised: 6/10
Editing Accuracy: 8/10\nFinal score: 6/10
Editing Accuracy: 8\nActually 6/10.
Editing Accuracy: 8\n6
Editing Accuracy: 8/10\nI lower that to 6.
Editing Accuracy: 8/10. I lower that to 6.
Editing Accuracy: 8/10\nThe score was lowered to 6.
Editing Accuracy: 8/10\nLowered by 2 for the seam.
Editing Accuracy: 8/10\nMinus 2 for the seam.
Editing Accuracy: 8/10\nI deduct two points for the seam.
Editing Accuracy: 8/10\nMake that 6.
Editing Accuracy: 8/10\nI would change it to 7 out of 10.
Editing Accuracy: 8/10\nAfter a second look I adjust this to a six.
Editing Accuracy: ~~8~~ 6
Editing Accuracy: <del>8</del> 6
Editing Accuracy: <s>8/10</s> 6/10
Editing Accuracy: 8½
Editing Accuracy: 8 ½
Editing Accuracy: ½
Editing Accuracy: 1⁰
Editing Accuracy: 1₀
Editing Accuracy: 10⁻¹
Editing Accuracy: 0¹
Editing Accuracy: 1'0
Editing Accuracy: 1*0
Editing Accuracy: 1\0
Editing Accuracy: 1_0
Editing Accuracy: 1,000
Editing Accuracy: 1e1
Editing Accuracy: 0x8
Editing Accuracy: 8️⃣ or 9️⃣
Editing Accuracy: 1️⃣0️⃣
Editing Accuracy: 8-ish
Editing Accuracy: 8ish/10
Editing Accuracy: 8/10-ish
Editing Accuracy: 8?
Editing Accuracy: 8/10?
Editing Accuracy: 8+
Editing Accuracy: 8...9
Editing Accuracy: 8/10/2024
Editing Accuracy: approx. 8
Editing Accuracy: around 8/10
Editing Accuracy: at least 8/10
Editing Accuracy: up to 8/10
Editing Accuracy: under 5/10
Editing Accuracy: somewhere near 8/10
Editing Accuracy: [6, 8]
Editing Accuracy: (6, 8)/10
Editing Accuracy: {8, 9}
EA, CP, VQ: 8, 7, 9
EA/CP/VQ = 8/7/9
Editing Accuracy, Context Preservation, Visual Quality: 8, 7, 9
| EA | CP | VQ |\n|---|---|---|\n| 8 | 7 | 9 |
Editing Accuracy: 8 (image A), 3 (image B)
Editing Accuracy: 8/10 for the first picture
Image A - Editing Accuracy: 8/10\nImage B - Editing Accuracy: 3/10
{"editing_accuracy": 8, "editing_accuracy": 5}
{"editing_accuracy": 8, "Editing Accuracy": 5}
{"editing_accuracy": {"score": 8, "rating": 6}}
{"editing_accuracy": {"score": 8, "score": 6}}
{"editing_accuracy": {"first": 8, "second": 6}}
{"editing_accuracy": [8]}
{"editing_accuracy": "7~8"}
{"editing_accuracy": "<5/10"}
{"editing_accuracy": "7 | 4"}
{"editing_accuracy": "8-ish"}
{"editing_accuracy": "about 8"}
{"editing_accuracy": "8 or 9"}
{"editing_accuracy": 1e400}
{"editing_accuracy": -0.5}
{"editing_accuracy": "eight and a half"}
{"a": {"editing_accuracy": 8}, "b": {"editing_accuracy": 3}}
"""
_READ = {
    8.0: r"""
1. **Editing Accuracy: 8/10** – It is gone.\n2. **Context Preservation: 7/10** – Blurred.\n3. **Visual Quality: 9/10**
**Editing Accuracy (EA):** 8/10\n**Context Preservation (CP):** 7/10\n**Visual Quality (VQ):** 9/10
Overall: 8/10\n1. Editing Accuracy: 8/10\n2. Context Preservation: 7/10\n3. Visual Quality: 9/10
Editing Accuracy: 8/10 (the 2 cm mass is gone)
Editing Accuracy: 8/10 - both of the 3 cm nodules are gone
Editing Accuracy: 8/10; good.
Editing Accuracy: 8!
Editing Accuracy: 8/10\nThe mass was reduced to 5 mm.
Editing Accuracy: 8/10, the nodule was reduced to 5.5 mm.
Editing Accuracy: 8/10\nThis changed 3 regions.
Editing Accuracy: 8/10 - the change is as asked, if a little bright.
{"editing_accuracy": {"score": 8, "scale": "zero to ten"}}
{"expected": {"editing_accuracy": 10}, "editing_accuracy": 8}
Editing Accuracy: 8 (low confidence)
Editing Accuracy: 8 because the tube is gone
Editing Accuracy: 8 points
Editing Accuracy: 08/10
Editing Accuracy: ８／１０
Editing Accuracy: ⑧/10
Editing Accuracy: 8/10\n\nOverall: 7/10
Editing Accuracy: 8/10\nTotal score: 24
Scores on a scale from 0 to 10.\nEditing Accuracy: 8
Scores range from 0 (bad) to 10 (perfect).\nEditing Accuracy: 8
| Criterion | Score (0-10) |\n|---|---|\n| Editing Accuracy | 8 |
| Criterion | Score /10 |\n|---|---|\n| Editing Accuracy | 8 |
Scores out of ten:\nEditing Accuracy: 8
Four of 5 experts would agree.\nEditing Accuracy: 8/10
The mass shrank from 3 to 5 mm.\nEditing Accuracy: 8/10
{"editing_accuracy": {"score": 8, "max": 10}}
{"editing_accuracy": {"score": 8, "scale": "0-10", "confidence": 0.9}}
{"scale": "0 to 10", "editing_accuracy": 8}
{"editing_accuracy": "8/10"}
{"editing_accuracy": "8 out of 10"}
{"weights": {"editing_accuracy": 0.5}, "editing_accuracy": 8}
{"editing_accuracy": 8, "visual_quality": {"score": 6}}
<think>Maybe Editing Accuracy: 6/10?</think>Editing Accuracy: 8/10
<editing>Editing Accuracy: <b>8</b>/10</editing>
""",
    10.0: r"""
Editing Accuracy: 10/10
Editing Accuracy: ten out of ten
{"editing_accuracy": 1e1}
""",
    0.0: r"""
Editing Accuracy: 0/10
Editing Accuracy: zero
{"editing_accuracy": 0}
""",
}


def _lines(text: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in text.strip().splitlines()]


NASTY: list[tuple[str, float | None]] = [
    *(
        (reply, None)
        for block in (_OTHER_SCALES, _NOT_ONE, NOT_SAID, SOMETHING_ELSE)
        for reply in _lines(block)
    ),
    *((reply, value) for value, block in _READ.items() for reply in _lines(block)),
]
